"""Shared memory of a wave of blocks: data, shadow, and the load and store sites."""

from __future__ import annotations

import numpy as np

from .access import count_wavefronts, lanes_and_warps
from .addresses import Geometry, Mask, Pattern
from .global_memory import CAUSE_ALIGN, element_index
from .ordering import Ordering
from .ptx import Instruction, Variable
from .shadow import Cells, Clash, Shadow

SHARED_START = 1024  # sm_90 keeps the first 1 KB for itself; it also makes null pointers visible

CAUSES = {
    "uninitialised": "no thread has stored to this cell: a __syncthreads is missing before the "
    "read, or the loop that fills the tile does not cover it",
    "pending": "cp.async.wait_group (and a __syncthreads after it) must come before the data are "
    "read; the copy may still be in flight",
    "after write": "a __syncthreads (within one warp: a __syncwarp) is missing between the write "
    "and this access",
    "after read": "a __syncthreads is missing at the end of the loop: this thread overwrites what "
    "another one may still be reading",
}


class Layout:
    """Where the shared variables of a kernel lie; addresses start at ``SHARED_START``."""

    def __init__(self, variables: list[Variable], dynamic_bytes: int):
        self.variables: list[tuple[int, Variable]] = []
        at = SHARED_START
        for v in (v for v in variables if not v.dynamic):
            at = -(-at // v.align) * v.align
            self.variables.append((at, v))
            at += v.size
        self.static_bytes = at - SHARED_START
        for v in (v for v in variables if v.dynamic):
            at = -(-at // max(16, v.align)) * max(16, v.align)
            self.variables.append((at, v))
        self.dynamic_start = at
        self.end = at + dynamic_bytes
        self.dynamic_bytes = dynamic_bytes

    def address(self, name: str) -> int | None:
        """The shared address of a variable, or None."""
        return next((at for at, v in self.variables if v.name == name), None)

    def describe(self, address: int) -> tuple[str, int]:
        """(source name, offset) of the variable in which ``address`` lies."""
        best = (SHARED_START, None)
        for at, v in self.variables:
            if at <= address and at >= best[0]:
                best = (at, v)
        if best[1] is None:
            return "shared memory", address - SHARED_START
        return source_name(best[1].name), address - best[0]


def source_name(symbol: str) -> str:
    """``_ZZ3fa1E2sQ`` -> ``sQ``: the last length-prefixed part of a mangled local name."""
    if not symbol.startswith("_Z"):
        return symbol
    names, at = [], 2
    while at < len(symbol):
        end = at
        while end < len(symbol) and symbol[end].isdigit():
            end += 1
        if end > at and int(symbol[at:end]) <= len(symbol) - end:
            length = int(symbol[at:end])
            names.append(symbol[end : end + length])
            at = end + length
        else:
            at = max(end, at + 1)
    return names[-1] if names else symbol


class SharedMemory:
    """Bytes and shadow stamps of all blocks of one wave."""

    def __init__(self, layout: Layout, geometry: Geometry, granule: int, check: bool):
        self.layout, self.geometry, self.granule = layout, geometry, granule
        self.size = layout.end - SHARED_START
        self.stride = -(-max(self.size, 16) // 16) * 16
        self.bytes = np.full((geometry.blocks, self.stride), 0xFF, np.uint8)
        self.ordering = Ordering(geometry)
        self.shadow = Shadow(self.stride // granule, geometry, self.ordering)
        self.check = check
        self._views: dict = {}

    def view(self, dtype: np.dtype) -> np.ndarray:
        """The bytes as elements, shape (blocks, elements)."""
        found = self._views.get(dtype)
        if found is None:
            found = self._views[dtype] = self.bytes.view(dtype)
        return found

    def gather(self, p: Pattern, start: int, dtype: np.dtype, count: int) -> np.ndarray:
        """Elements at every lane, shape (count, rows, columns)."""
        item = dtype.itemsize
        first = start // item
        view = self.view(dtype)
        if self.geometry.blocks == 1:
            return view[0, first:].take(element_index(p, item, count), mode="clip")
        if p.rel.shape[0] == 1:
            index = element_index(p, item, count)[:, 0]
            return view[:, first:].take(index, axis=1, mode="clip").transpose(1, 0, 2)
        index = self.flat_index(p, item, count)
        return view.reshape(-1)[first:].take(index, mode="clip")

    def flat_index(self, p: Pattern, item: int, count: int) -> np.ndarray:
        """Element indices over all blocks, shape (count, blocks, columns)."""
        key = ("flat", item, count)
        found = p.memo.get(key)
        if found is None:
            rows = np.arange(self.geometry.blocks).reshape(1, -1, 1) * (self.stride // item)
            found = p.memo[key] = element_index(p, item, count) + rows
        return found

    def scatter(self, p: Pattern, start: int, dtype: np.dtype, values, mask: Mask | None) -> None:
        """Store one array per vector element at every active lane."""
        item = dtype.itemsize
        index = self.flat_index(p, item, len(values))
        target = self.view(dtype).reshape(-1)[start // item :]
        shape = (self.geometry.blocks, max(index.shape[2], *(v.shape[1] for v in values)))
        lanes = None
        if mask is not None:
            shape = (shape[0], self.geometry.threads)
            lanes = np.broadcast_to(mask.array, shape)
        for where, value in zip(index, values, strict=True):
            if lanes is None:
                if where.shape != shape:
                    where = np.broadcast_to(where, shape)
                target[where] = value
            else:
                where = np.broadcast_to(where, shape)[lanes]
                target[where] = np.broadcast_to(value, shape)[lanes]


class SharedFacts:
    """What a pattern costs in shared memory at one width and phase, and which cells it touches."""

    __slots__ = ("bytes", "cells", "ideal", "misaligned", "requests", "wavefronts", "width")

    def __init__(
        self, p: Pattern, width: int, phase: int, memory: SharedMemory, joins: bool = False
    ):
        geometry = memory.geometry
        self.width = width
        low_bits = int(np.bitwise_or.reduce((p.rel + phase) & (width - 1), axis=None))
        self.misaligned = low_bits != 0
        lanes, self.requests = lanes_and_warps(p, geometry)
        self.bytes = lanes * width
        self.wavefronts, self.ideal = count_wavefronts(p, phase, width, geometry, joins)
        key = ("cells", width)
        if key not in p.memo:
            p.memo[key] = Cells(p, width, memory.granule, geometry, memory.shadow.cells)
        self.cells = p.memo[key]


class SharedSite:
    """Common part of shared loads, stores and atomics; ``joins``: see ``count_wavefronts``."""

    reading = True
    joins = False

    def __init__(self, launch, instruction: Instruction, width: int, count: int, dtype):
        self.launch, self.instruction = launch, instruction
        self.dtype = np.dtype(dtype)
        self.count, self.width = count, width * count
        self.counts = launch.counts[instruction.index]
        self.touched: dict = {}

    def begin_wave(self, wave) -> None:
        """Bind to the shared memory of a new wave."""
        self.book, self.memory = wave.book, wave.shared
        self.size = self.memory.size

    def reach(self, p: Pattern, o: int) -> tuple[SharedFacts, int]:
        """Bounds, alignment and counters of one request; return its facts and start."""
        start = ((o + (1 << 31)) & 0xFFFFFFFF) - (1 << 31) - SHARED_START
        key = ("shared", self.width, start & 127, self.joins)
        facts = p.memo.get(key)
        if facts is None:
            facts = p.memo[key] = SharedFacts(p, self.width, start & 127, self.memory, self.joins)
        if facts.misaligned:
            raise self.misaligned(p, start)
        if start < 0 or start + p.span + self.width > self.size:
            raise self.out_of_bounds(p, start)
        self.touched[facts] = self.touched.get(facts, 0) + 1
        return facts, start

    def fold_counts(self) -> None:
        """Move what was logged into the instruction's counters."""
        counts = self.counts
        for facts, times in self.touched.items():
            counts.shared_requests += facts.requests * times
            counts.shared_bytes += facts.bytes * times
            counts.shared_wavefronts += facts.wavefronts * times
            counts.shared_ideal_wavefronts += facts.ideal * times
        self.touched.clear()

    def out_of_bounds(self, p: Pattern, start: int):
        """The fault for the first lane outside the block's shared memory."""
        offsets = p.rel + start
        bad = (offsets < 0) | (offsets + self.width > self.size)
        row, column, others = self.launch.first_lane(bad, p.mask)
        at = int(offsets[row if offsets.shape[0] > 1 else 0, column if offsets.shape[1] > 1 else 0])
        layout = self.memory.layout
        name, offset = layout.describe(at + SHARED_START)
        message = (
            f"shared {'read' if self.reading else 'write'} of {self.width} bytes "
            f"at {name}{offset:+d} (shared address {at + SHARED_START:#x}): "
            f"the block has {self.size:,} bytes, the access needs {at + self.width:,}"
        )
        cause = "an index runs past the end of the tile"
        if any(v.dynamic for _, v in layout.variables):
            cause += (
                f", or the launch gives too little dynamic shared memory "
                f"({layout.dynamic_bytes:,} bytes given)"
            )
        return self.launch.fault(
            "out of bounds",
            message,
            self.instruction,
            cause,
            (row, column, others),
            array=name,
            byte_offset=offset,
        )

    def misaligned(self, p: Pattern, start: int):
        """The fault for the first misaligned lane."""
        bad = ((p.rel + start) & (self.width - 1)) != 0
        row, column, others = self.launch.first_lane(bad, p.mask)
        at = int(
            np.broadcast_to(p.rel, (bad.shape[0], self.memory.geometry.threads))[
                min(row, bad.shape[0] - 1), column
            ]
        )
        name, offset = self.memory.layout.describe(at + start + SHARED_START)
        return self.launch.fault(
            "misaligned",
            f"shared access of {self.width} bytes at {name}{offset:+d} is not aligned to "
            f"{self.width} bytes",
            self.instruction,
            CAUSE_ALIGN,
            (row, column, others),
            array=name,
            byte_offset=offset,
        )

    def clash(self, clash: Clash):
        """Turn a shadow conflict into a fault that names both parties."""
        return clash_fault(self.launch, self.memory, self.instruction, clash, self.reading)


def clash_fault(launch, memory: SharedMemory, instruction, clash: Clash, reading: bool):
    """The fault for a shadow conflict of ``instruction``."""
    name, offset = memory.layout.describe(clash.cell * memory.granule + SHARED_START)
    cell = f"{name}{offset:+d}"
    kinds = {
        "uninitialised": ("uninitialised", f"read of {cell}, which was never written"),
        "pending": (
            "async copy in flight",
            f"{'read' if reading else 'write'} of {cell} while a cp.async is writing it",
        ),
        "after write": (
            "race",
            f"{'read' if reading else 'overwrite'} of {cell} after a write by another thread, "
            "with no barrier in between",
        ),
        "after read": (
            "race",
            f"overwrites {cell} after a read by another thread, with no barrier in between",
        ),
    }
    kind, message = kinds[clash.reason]
    parties = []
    if clash.reason != "uninitialised":
        role = {"pending": "copy issued by", "after write": "written by", "after read": "read by"}
        role = role[clash.reason] + (" several threads, among them" if clash.several else "")
        parties.append(launch.party(role, clash.row, clash.old_thread, clash.old_instruction))
    return launch.fault(
        kind,
        message,
        instruction,
        CAUSES[clash.reason],
        (clash.row, clash.thread, clash.others),
        array=name,
        byte_offset=offset,
        parties=parties,
    )


class SharedLoad(SharedSite):
    """``ld.shared``: returns shape (count, rows, columns)."""

    joins = True

    def __call__(self, p: Pattern, o: int, mask: Mask | None = None) -> np.ndarray:
        """Return the loaded elements of every lane; ``mask`` None means all lanes."""
        if mask is not None:
            if not mask.count:
                return np.zeros((self.count, 1, 1), self.dtype)
            p, low = self.book.under(p, mask)
            o += low
        facts, start = self.reach(p, o)
        memory = self.memory
        if memory.check:
            clash = memory.shadow.read(facts.cells, start // memory.granule, self.instruction.index)
            if clash is not None:
                raise self.clash(clash)
        return memory.gather(p, start, self.dtype, self.count)


class GroupFacts:
    """A pattern read at several offsets: what each read costs, and all cells together."""

    __slots__ = ("cells", "index", "low", "misaligned", "parts", "span")

    def __init__(self, p: Pattern, start: int, group: SharedLoadGroup):
        memory, site = group.memory, group.members[0]
        self.parts = [
            SharedFacts(p, site.width, (start + at) & 127, memory, site.joins)
            for at in group.offsets
        ]
        self.misaligned = any(facts.misaligned for facts in self.parts)
        self.low = min(group.offsets)
        self.span = max(group.offsets) - self.low + p.span + site.width
        if self.misaligned:
            return
        base = tuple(at - self.low for at in group.offsets)
        stride = memory.shadow.cells
        self.cells = Cells(p, site.width, memory.granule, memory.geometry, stride, base)
        item = site.dtype.itemsize
        steps = np.concatenate([at // item + np.arange(site.count) for at in base])
        if p.rel.shape[0] == 1 and memory.geometry.blocks > 1:
            self.index = p.rel // item + steps[:, None]
        else:
            self.index = memory.flat_index(p, item, 1) + steps[:, None, None]


class SharedLoadGroup:
    """Neighbouring ``ld.shared`` of one source line through one base register, done at once.

    Nothing is written to shared memory between them, so reading them together changes nothing;
    if the group is at fault, the loads are repeated one by one to find which.
    """

    def __init__(self, launch, members: list[SharedLoad], offsets: list[int]):
        self.launch, self.members, self.offsets = launch, members, tuple(offsets)
        self.instruction = members[0].instruction
        self.dtype, self.key = members[0].dtype, ("group", members[0].width, self.offsets)
        self.touched: dict[GroupFacts, int] = {}

    def begin_wave(self, wave) -> None:
        """Bind to the shared memory of a new wave."""
        self.book, self.memory = wave.book, wave.shared
        for site in self.members:
            site.begin_wave(wave)

    def __call__(self, p: Pattern, o: int, mask: Mask | None = None) -> np.ndarray:
        """Return the loaded elements of every lane; ``mask`` None means all lanes."""
        if mask is not None:
            if not mask.count:
                return np.zeros((len(self.members) * self.members[0].count, 1, 1), self.dtype)
            p, low = self.book.under(p, mask)
            o += low
        memory = self.memory
        start = o - SHARED_START
        key = (self.key, start & 127)
        facts = p.memo.get(key)
        if facts is None:
            facts = p.memo[key] = GroupFacts(p, start, self)
        first = start + facts.low
        if first < 0 or first + facts.span > memory.size or facts.misaligned:
            return self._one_by_one(p, o)
        if memory.check and memory.shadow.read(
            facts.cells, first // memory.granule, self.instruction.index
        ):
            return self._one_by_one(p, o)
        self.touched[facts] = self.touched.get(facts, 0) + 1
        view = memory.view(self.dtype)
        if facts.index.ndim == 2:
            found = view[:, first // self.dtype.itemsize :].take(facts.index, axis=1, mode="clip")
            return found.transpose(1, 0, 2)
        return view.reshape(-1)[first // self.dtype.itemsize :].take(facts.index, mode="clip")

    def _one_by_one(self, p: Pattern, o: int) -> np.ndarray:
        return np.concatenate(
            [site(p, o + at) for site, at in zip(self.members, self.offsets, strict=True)]
        )

    def fold_counts(self) -> None:
        """Hand each load its own part of what was logged."""
        for facts, times in self.touched.items():
            for site, part in zip(self.members, facts.parts, strict=True):
                site.touched[part] = site.touched.get(part, 0) + times
        self.touched.clear()
        for site in self.members:
            site.fold_counts()


class SharedStore(SharedSite):
    """``st.shared``: takes one array per vector element."""

    reading = False

    def __call__(self, p: Pattern, o: int, mask: Mask | None, *values: np.ndarray) -> None:
        """Store one array per element for the lanes of ``mask`` (None: all)."""
        if mask is not None:
            if not mask.count:
                return
            p, low = self.book.under(p, mask)
            o += low
        facts, start = self.reach(p, o)
        memory = self.memory
        if memory.check:
            cell = start // memory.granule
            clash = memory.shadow.write(facts.cells, cell, self.instruction.index)
            if clash is not None:
                raise self.clash(clash)
        values = [np.asarray(v).astype(self.dtype, copy=False) for v in values]
        memory.scatter(p, start, self.dtype, values, mask)
        if facts.cells.collide and memory.check:
            self.check_collision(p, start, values)

    def check_collision(self, p: Pattern, start: int, values) -> None:
        """Two lanes stored to one cell in one instruction: a race unless the values agree."""
        kept = self.memory.gather(p, start, self.dtype, self.count)
        bits = np.dtype(f"u{self.dtype.itemsize}")
        lost = np.zeros((1, 1), bool)
        for now, value in zip(kept, values, strict=True):
            now, value = np.broadcast_arrays(now, value)
            differ = np.ascontiguousarray(now).view(bits) != np.ascontiguousarray(value).view(bits)
            lost = lost | differ
        if p.mask is not None:
            lost = lost & p.mask.array
        if not lost.any():
            self.launch.warn(
                "several threads store the same value to one shared cell in one instruction",
                self.instruction,
            )
            return
        row, column, others = self.launch.first_lane(lost, p.mask)
        at = int(np.broadcast_to(p.rel, lost.shape)[min(row, lost.shape[0] - 1), column])
        name, offset = self.memory.layout.describe(at + start + SHARED_START)
        raise self.launch.fault(
            "race",
            f"several threads store different values to {name}{offset:+d} in one instruction",
            self.instruction,
            "two threads of the block compute the same index; one value is lost",
            (row, column, others),
            array=name,
            byte_offset=offset,
        )
