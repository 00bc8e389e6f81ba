"""Local memory: each lane's own frame (arrays that the compiler could not keep in registers)."""

from __future__ import annotations

import numpy as np

from .access import count_distinct, lanes_and_warps
from .addresses import Geometry, Mask, Pattern
from .ptx import Instruction, Variable


class FrameLayout:
    """Offsets of the local and call-parameter variables in a lane's frame."""

    def __init__(self, variables: list[Variable]):
        self.offsets: dict[str, int] = {}
        at = 0
        for v in variables:
            align = max(v.align, 8)
            at = -(-at // align) * align
            self.offsets[v.name] = at
            at += max(v.size, 8)
        self.size = -(-at // 16) * 16
        self.variables = {v.name: v for v in variables}

    def describe(self, offset: int) -> str:
        """Name the variable around a frame offset."""
        best = max(
            (v for v in self.offsets.items() if v[1] <= offset), key=lambda v: v[1], default=None
        )
        return f"{best[0]}{offset - best[1]:+d}" if best else f"local{offset:+d}"


class LocalMemory:
    """Frames of all lanes of one wave."""

    def __init__(self, layout: FrameLayout, geometry: Geometry):
        self.layout, self.geometry, self.size = layout, geometry, layout.size
        self.bytes = np.zeros(geometry.blocks * geometry.threads * max(self.size, 16), np.uint8)

    def index(self, p: Pattern, item: int, count: int) -> np.ndarray:
        """Flat element indices, shape (count, blocks, threads)."""
        key = ("local", item, count)
        found = p.memo.get(key)
        if found is None:
            lanes = np.arange(self.geometry.blocks * self.geometry.threads)
            base = lanes.reshape(1, *self.geometry.shape) * (self.size // item)
            steps = np.arange(count).reshape(-1, 1, 1)
            found = p.memo[key] = base + p.rel // item + steps
        return found


def count_local_sectors(p: Pattern, width: int, geometry: Geometry) -> int:
    """Sectors of one local request: lane frames are interleaved word by word on the device."""
    words = geometry.by_warp(p.rel >> 2)
    keys = words * 4 + np.arange(32) // 8
    active = None if p.mask is None else geometry.by_warp(p.mask.array)
    if active is not None:
        keys, active = np.broadcast_arrays(keys, active)
    repeats = geometry.blocks if keys.shape[0] == 1 else 1
    return count_distinct(keys, active) * repeats * max(1, width // 4)


class LocalSite:
    """Common part of local loads and stores."""

    counted = True

    def __init__(self, launch, instruction: Instruction, width: int, count: int, dtype):
        self.launch, self.instruction = launch, instruction
        self.dtype = np.dtype(dtype)
        self.item, self.count, self.width = width, count, width * count
        self.counts = launch.counts[instruction.index]

    def begin_wave(self, wave) -> None:
        """Bind to the frames of a new wave."""
        self.book, self.geometry, self.memory = wave.book, wave.geometry, wave.local
        self.elements = self.memory.bytes.view(self.dtype)

    def reach(self, p: Pattern, o: int) -> np.ndarray:
        """Check and count one request; return the elements from its start on."""
        if o < 0 or o + p.span + self.width > self.memory.size:
            raise self.out_of_bounds(p, o)
        if int(np.bitwise_or.reduce((p.rel + o) & (self.width - 1), axis=None)):
            raise self.launch.fault(
                "misaligned", f"local access of {self.width} bytes", self.instruction
            )
        if self.counted:
            lanes, warps = lanes_and_warps(p, self.geometry)
            self.counts.local_requests += warps
            self.counts.local_bytes += lanes * self.width
            key = ("local sectors", self.width)
            if key not in p.memo:
                p.memo[key] = count_local_sectors(p, self.width, self.geometry)
            self.counts.local_sectors += p.memo[key]
        return self.elements[o // self.item :]

    def out_of_bounds(self, p: Pattern, o: int):
        """The fault for the first lane that leaves its frame."""
        offsets = p.rel + o
        bad = (offsets < 0) | (offsets + self.width > self.memory.size)
        row, column, others = self.launch.first_lane(bad, p.mask)
        at = int(
            np.broadcast_to(offsets, np.broadcast_shapes(offsets.shape, bad.shape))[
                min(row, offsets.shape[0] - 1), min(column, offsets.shape[1] - 1)
            ]
        )
        return self.launch.fault(
            "out of bounds",
            f"local access of {self.width} bytes at byte {at} of the thread's local memory "
            f"({self.memory.size} bytes, near {self.memory.layout.describe(at)})",
            self.instruction,
            "the index of an array declared inside the kernel is out of range",
            (row, column, others),
            array="local",
            byte_offset=at,
        )


class LocalLoad(LocalSite):
    """``ld.local`` and ``ld.param`` of call parameters."""

    def __call__(self, p: Pattern, o: int, mask: Mask | None = None) -> np.ndarray:
        """Return the loaded elements of every lane; ``mask`` None means all lanes."""
        if mask is not None:
            if not mask.count:
                return np.zeros((self.count, 1, 1), self.dtype)
            p, low = self.book.under(p, mask)
            o += low
        elements = self.reach(p, o)
        return elements.take(self.memory.index(p, self.item, self.count), mode="clip")


class LocalStore(LocalSite):
    """``st.local`` and ``st.param`` of call parameters."""

    def __call__(self, p: Pattern, o: int, mask: Mask | None, *values: np.ndarray) -> None:
        """Store one array per element for the lanes of ``mask`` (None: all)."""
        if mask is not None:
            if not mask.count:
                return
            p, low = self.book.under(p, mask)
            o += low
        elements = self.reach(p, o)
        index = self.memory.index(p, self.item, self.count)
        for where, value in zip(index, values, strict=True):
            if mask is None:
                elements[where] = value
            else:
                lanes = np.broadcast_to(mask.array, where.shape)
                elements[where[lanes]] = np.broadcast_to(value, where.shape)[lanes]
