"""Global (and constant) memory: loads, stores, their checks and their counters.

Each memory instruction of a kernel owns one *site* object, called by the generated code with the
address pattern, the offset and the mask. A site logs only (facts, start) pairs; counts, unique
bytes and races between blocks are worked out from the log when the wave is over.
"""

from __future__ import annotations

import numpy as np

from .access import count_sectors, lanes_and_warps
from .address_space import GLOBAL_BASE, SLOT, Buffer
from .addresses import Mask, Pattern
from .counters import Traffic
from .ptx import Instruction

CAUSE_BOUNDS = (
    "an index is not guarded against the array's length, or a row stride is wrong; "
    "check the last block and the last row"
)
CAUSE_ALIGN = "a vector access (float4, cp.async 16, ...) needs an address that its width divides"
CAUSE_COLLIDE = (
    "several threads of a block update one location with plain stores; "
    "use atomicAdd or let one thread write"
)


class Facts:
    """What a pattern costs at one width and phase."""

    __slots__ = ("misaligned", "pattern", "traffic", "width")

    def __init__(self, pattern: Pattern, width: int, align: int, phase: int, geometry):
        self.pattern, self.width = pattern, width
        low_bits = int(np.bitwise_or.reduce((pattern.rel + phase) & (align - 1), axis=None))
        self.misaligned = low_bits != 0
        lanes, warps = lanes_and_warps(pattern, geometry)
        self.traffic = Traffic(warps, lanes * width, count_sectors(pattern, phase, geometry))


def element_index(pattern: Pattern, item: int, count: int) -> np.ndarray:
    """Element indices of every lane, shape (count, rows, columns)."""
    key = ("index", item, count)
    found = pattern.memo.get(key)
    if found is None:
        steps = np.arange(count, dtype=np.int64).reshape(-1, 1, 1)
        found = pattern.memo[key] = pattern.rel // item + steps
    return found


def lane_collisions(pattern: Pattern, width: int, geometry) -> bool:
    """True if two active lanes of one block touch the same bytes (equal widths, aligned)."""
    key = ("collide", width)
    found = pattern.memo.get(key)
    if found is None:
        rel = pattern.rel
        if pattern.mask is None and rel.shape[1] == 1:
            found = geometry.threads > 1
        else:
            rel = np.broadcast_to(rel, (rel.shape[0], geometry.threads)) // width
            if pattern.mask is not None:
                rel = np.where(pattern.mask.array, rel, -1 - np.arange(rel.shape[1]))
            ordered = np.sort(rel, axis=1)
            found = bool((ordered[:, 1:] == ordered[:, :-1]).any())
        pattern.memo[key] = found
    return found


_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}


class GlobalSite:
    """Common part of global loads, stores and atomics."""

    kind = "load"

    def __init__(self, launch, instruction: Instruction, width: int, count: int, dtype):
        self.launch, self.instruction = launch, instruction
        self.dtype = np.dtype(dtype)
        self.item, self.count, self.width = width, count, width * count
        self.align = self.width
        self.strong = not _STRONG.isdisjoint(instruction.modifiers)
        self.race_kind = "atomic" if self.strong else self.kind
        self.buffer: Buffer | None = None
        self.counts = launch.counts[instruction.index]
        self.touched: dict = {}

    def begin_wave(self, wave) -> None:
        """Bind to the address book of a new wave."""
        self.book, self.geometry = wave.book, wave.geometry

    def reach(self, p: Pattern, o: int) -> tuple[Facts, np.ndarray]:
        """Check one request and log it; return its facts and the elements from its start on."""
        if self.strong:
            releases = not {"release", "acquire"}.isdisjoint(self.instruction.modifiers)
            self.launch.fences.atomic(p.mask, releases)
        key = (self.width, self.align, o & 31)
        facts = p.memo.get(key)
        if facts is None:
            facts = Facts(p, self.width, self.align, o & 31, self.geometry)
            p.memo[key] = facts
        buffer = self.buffer
        if buffer is None:
            buffer = self.find_buffer(p, o)
        if facts.misaligned:
            self.misaligned(p, o)
        start = o - buffer.base
        if start < 0 or start + p.span + self.width > buffer.size:
            buffer = self.find_buffer(p, o)
            start = o - buffer.base
        touched = self.touched.get((facts, buffer))
        if touched is None:
            touched = self.touched[facts, buffer] = []
        touched.append(start)
        phase = start % self.item
        return facts, buffer.view(self.dtype, phase)[start // self.item :]

    def tally(self, traffic: Traffic, buffer: Buffer, times: int = 1) -> None:
        """Add to the counters of instruction and array; constants have a cache of their own."""
        if "const" in self.instruction.modifiers:
            return
        arrays = self.launch.arrays
        for counts in (self.counts, arrays.get(buffer.name)):
            for name in ("requests", "bytes", "sectors") if counts is not None else ():
                key = f"{self.kind}_{name}"
                setattr(counts, key, getattr(counts, key) + getattr(traffic, name) * times)

    def find_buffer(self, p: Pattern, o: int) -> Buffer:
        """Look the buffer up again; a request that does not fit in it is a fault."""
        buffer = self.launch.space.find(o)
        outside = None
        if buffer is None:
            outside = np.ones(p.rel.shape, bool)
        else:
            start = o - buffer.base
            if start < 0 or start + p.span + self.width > buffer.size:
                offsets = p.rel + start
                outside = (offsets < 0) | (offsets + self.width > buffer.size)
        if outside is None:
            self.buffer = buffer
            return buffer
        raise self.out_of_bounds(p, o, outside)

    def out_of_bounds(self, p: Pattern, o: int, outside: np.ndarray):
        """The fault for the first lane in ``outside``."""
        row, column, others = self.launch.first_lane(outside, p.mask)
        address = o + int(np.broadcast_to(p.rel, outside.shape)[_fit(row, column, p.rel)])
        buffer = self.launch.space.find(address)
        what = "read" if self.kind == "load" else "write"
        if buffer is None:
            return self.launch.fault(
                "out of bounds",
                f"{what} of {self.width} bytes at address {address:#x}: no buffer there",
                self.instruction,
                "a null pointer, an uninitialised pointer or a host pointer was passed",
                (row, column, others),
            )
        offset = address - buffer.base
        return self.launch.fault(
            "out of bounds",
            f"global {what} of {self.width} bytes at {buffer.describe(offset)}",
            self.instruction,
            CAUSE_BOUNDS,
            (row, column, others),
            array=buffer.name,
            byte_offset=offset,
            element=offset // buffer.item if buffer.item else None,
        )

    def misaligned(self, p: Pattern, o: int) -> None:
        """Raise the fault for the first misaligned lane."""
        bad = ((p.rel + o) & (self.align - 1)) != 0
        row, column, others = self.launch.first_lane(bad, p.mask)
        address = o + int(p.rel[_fit(row, column, p.rel)])
        buffer = self.launch.space.find(address)
        if buffer is None:
            raise self.out_of_bounds(p, o, bad)
        offset = address - buffer.base
        raise self.launch.fault(
            "misaligned",
            f"global access of {self.width} bytes at {buffer.describe(offset)} is not aligned "
            f"to {self.align} bytes",
            self.instruction,
            CAUSE_ALIGN,
            (row, column, others),
            array=buffer.name,
            byte_offset=offset,
        )

    def split(self, p: Pattern, o: int):
        """Yield (mask, pattern, offset) for each buffer that the lanes point to."""
        slots = (p.rel + o - GLOBAL_BASE) // SLOT
        for slot in np.unique(slots):
            lanes = slots == slot if p.mask is None else (slots == slot) & p.mask.array
            if lanes.any():
                part = self.book.mask(lanes)
                sub, low = self.book.under(p, part)
                yield part, sub, o + low


def _fit(row: int, column: int, array: np.ndarray) -> tuple[int, int]:
    return (row if array.shape[0] > 1 else 0, column if array.shape[1] > 1 else 0)


class GlobalLoad(GlobalSite):
    """``ld.global`` / ``ld.const``: returns shape (count, rows, columns)."""

    def __call__(self, p: Pattern, o: int, mask: Mask | None = None) -> np.ndarray:
        """Return the loaded elements of every lane; ``mask`` None means all lanes."""
        if mask is not None:
            if not mask.count:
                return np.zeros((self.count, 1, 1), self.dtype)
            p, low = self.book.under(p, mask)
            o += low
        if p.span >= SLOT >> 2:
            return self.from_several_buffers(p, o)
        _, elements = self.reach(p, o)
        return elements.take(element_index(p, self.item, self.count), mode="clip")

    def from_several_buffers(self, p: Pattern, o: int) -> np.ndarray:
        """Load when the lanes point into different arrays: one request an array."""
        result = np.zeros((self.count, *self.geometry.shape), self.dtype)
        for part, sub, start in self.split(p, o):
            _, elements = self.reach(sub, start)
            values = elements.take(element_index(sub, self.item, self.count), mode="clip")
            np.copyto(result, values, where=part.array)
        return result


class GlobalStore(GlobalSite):
    """``st.global``: takes one array per vector element."""

    kind = "store"

    def __call__(self, p: Pattern, o: int, mask: Mask | None, *values: np.ndarray) -> None:
        """Store one array per element for the lanes of ``mask`` (None: all)."""
        if mask is not None and not mask.count:
            return
        if mask is not None:
            p, low = self.book.under(p, mask)
            o += low
        if p.span < SLOT >> 2:
            self.write(p, o, mask, values)
            return
        for part, sub, start in self.split(p, o):
            self.write(sub, start, part, values)

    def write(self, p: Pattern, o: int, mask: Mask | None, values: tuple) -> None:
        """One store request into one array."""
        _, elements = self.reach(p, o)
        if self.buffer.read_only:
            raise self.launch.fault(
                "read-only",
                f"store to {self.buffer.name}, which is constant or read-only on the host",
                self.instruction,
                "the array was passed as read-only, or lies in constant memory",
            )
        index = element_index(p, self.item, self.count)
        collide = lane_collisions(p, self.width, self.geometry)
        shape = np.broadcast_shapes(p.rel.shape, *(v.shape for v in values))
        lanes = None
        if mask is not None:
            shape = np.broadcast_shapes(shape, mask.array.shape)
            lanes = np.broadcast_to(mask.array, shape)
        for n, value in enumerate(values):
            where, value = index[n], value
            if lanes is not None:
                where = np.broadcast_to(where, shape)[lanes]
                value = np.broadcast_to(value, shape)[lanes]
            elif where.shape != shape:
                where = np.broadcast_to(where, shape)
            elements[where] = value
            if collide:
                self.check_collision(p, o, elements, where, value, lanes)

    def check_collision(self, p, o, elements, where, value, lanes) -> None:
        """Two lanes stored to one element: a race unless the values agree."""
        lost = elements[where].view(_bits(self.item)) != np.broadcast_to(
            value.astype(self.dtype), where.shape
        ).view(_bits(self.item))
        if not lost.any():
            self.launch.warn(
                f"several threads write the same value to one element of {self.buffer.name} "
                "in one instruction",
                self.instruction,
            )
            return
        at = lost
        if lanes is not None:
            at = np.zeros(lanes.shape, bool)
            at[lanes] = lost
        row, column, others = self.launch.first_lane(at, p.mask)
        if p.rel.shape[0] == 1 and self.geometry.blocks > 1 and p.rel.shape[1] > 1:
            return  # blocks collide, not lanes: the launch's race check names both blocks
        offset = o + int(p.rel[_fit(row, column, p.rel)]) - self.buffer.base
        raise self.launch.fault(
            "race",
            f"several threads store different values to {self.buffer.describe(offset)} "
            "in one instruction; one wins, the others are lost",
            self.instruction,
            CAUSE_COLLIDE,
            (row, column, others),
            array=self.buffer.name,
            byte_offset=offset,
            element=offset // self.buffer.item if self.buffer.item else None,
        )


def _bits(item: int) -> np.dtype:
    return np.dtype(f"u{item}")
