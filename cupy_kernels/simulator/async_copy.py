"""cp.async: copies from global to shared memory that complete as late as the program allows.

The source is read at issue; the destination is marked *pending* and gets its bytes only when the
issuing lane executes the wait that names the copy's group. A missing wait is thus caught always,
never by luck of timing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .access import count_moves, count_sectors
from .addresses import Mask, Pattern
from .counters import Traffic
from .global_memory import GlobalSite, element_index
from .ptx import Instruction
from .shadow import PENDING
from .shared_memory import SHARED_START, SharedFacts, SharedSite


@dataclass
class PendingCopy:
    """One issued cp.async instruction: its lanes' data and where they will land."""

    site: CopySite
    pattern: Pattern  # destination, unmasked
    offset: int
    mask: Mask | None
    group: np.ndarray  # per lane, shape broadcastable to the wave
    data: np.ndarray


class AsyncCopies:
    """Copies in flight in one wave, and each lane's groups."""

    def __init__(self, launch, wave):
        self.launch, self.wave = launch, wave
        self.committed = np.zeros((1, 1), np.int64)
        self.pending: list[PendingCopy] = []

    def commit(self, mask: Mask | None) -> None:
        """``commit_group``: the lanes' open group is closed, a new one begins."""
        if mask is None:
            self.committed = self.committed + 1
        else:
            self.committed = self.committed + mask.array

    def wait(self, keep: int, mask: Mask | None, index: int, everything: bool = False) -> None:
        """``wait_group keep``: all but the newest ``keep`` groups of these lanes land."""
        limit = self.committed - keep
        still = []
        for copy in self.pending:
            ready = copy.group < (limit if not everything else np.iinfo(np.int64).max)
            if mask is None and copy.mask is None and ready.size == 1:
                if ready.item():
                    copy.site.land(copy, copy.mask)
                else:
                    still.append(copy)
                continue
            rest = self._land_some(copy, ready, mask)
            if rest is not None:
                still.append(rest)
        self.pending = still

    def _land_some(self, copy: PendingCopy, ready, mask: Mask | None) -> PendingCopy | None:
        lanes = np.ones((1, 1), bool) if copy.mask is None else copy.mask.array
        landing = lanes & ready if mask is None else lanes & ready & mask.array
        if landing.any():
            copy.site.land(copy, self.wave.book.mask(landing))
        left = lanes & ~landing
        if not left.any():
            return None
        copy.mask = self.wave.book.mask(left)
        return copy

    def at_exit(self) -> None:
        """Copies never waited for: nobody reads them, so a warning is enough."""
        if self.pending:
            self.launch.warn(
                "a cp.async is still in flight when the kernel ends (no wait names its group)",
                self.pending[0].site.instruction,
            )


class CopySite:
    """One ``cp.async`` instruction of ``size`` bytes a lane."""

    def __init__(self, launch, instruction: Instruction, size: int):
        self.launch, self.instruction, self.size = launch, instruction, size
        self.cached = "ca" in instruction.modifiers
        self.element = np.dtype("u4") if size == 4 else np.dtype("u8")
        self.count = size // self.element.itemsize
        self.source = GlobalSite(launch, instruction, self.element.itemsize, self.count, "u8")
        self.source.dtype = self.element
        self.source.kind = self.source.race_kind = "cp_async"
        self.target = SharedSite(launch, instruction, self.element.itemsize, self.count, "u8")
        self.target.reading = False
        self.sites = {"global": self.source}

    def begin_wave(self, wave) -> None:
        """Bind to a new wave."""
        self.wave, self.book, self.memory = wave, wave.book, wave.shared
        self.source.begin_wave(wave)
        self.target.begin_wave(wave)

    def __call__(self, tp, to, sp, so, source_size, mask: Mask | None) -> None:
        """Issue the copy: check both ends, read the source, mark the destination as pending."""
        if mask is not None and not mask.count:
            return
        data = self.read_source(sp, so, source_size, mask)
        self.count_moves(sp, so, tp, to, self._reading(source_size, mask))
        p, low = (tp, 0) if mask is None else self.book.under(tp, mask)
        facts, start = self.target.reach(p, to + low)
        self.target.touched.clear()  # the copy engine's writes are not load/store wavefronts
        memory = self.memory
        if memory.check:
            clash = memory.shadow.write(
                facts.cells, start // memory.granule, self.instruction.index, PENDING
            )
            if clash is not None:
                raise self.target.clash(clash)
        copies = self.wave.copies
        copies.pending.append(PendingCopy(self, tp, to, mask, copies.committed, data))

    def _reading(self, source_size, mask: Mask | None) -> Mask | None:
        """The lanes that read anything."""
        if source_size is None:
            return mask
        lanes = source_size > 0
        return self.book.mask(lanes if mask is None else lanes & mask.array)

    def count_moves(self, sp: Pattern, so: int, tp: Pattern, to: int, mask: Mask | None) -> None:
        """What the copy costs on its way: see ``Counts.cp_async_moves``."""
        key = ("moves", tp, so & 31, to & 31, mask)
        moves = sp.memo.get(key)
        if moves is None:
            p, low = (sp, 0) if mask is None else self.book.under(sp, mask)
            if self.cached:
                moves = count_sectors(p, (so + low) & 31, self.wave.geometry)
            else:
                phases = ((so + low) & 31, to & 31)
                moves = count_moves(p, tp, phases, self.wave.geometry)
            sp.memo[key] = moves
        self.source.counts.cp_async_moves += moves

    def read_source(self, p: Pattern, o: int, source_size, mask: Mask | None) -> np.ndarray:
        """The bytes to copy, shape (count, rows, columns); missing ones are zeros."""
        if source_size is None:
            return self._gather(p, o, mask)
        result = np.zeros((self.count, *self.wave.geometry.shape), self.element)
        lanes = np.ones((1, 1), bool) if mask is None else mask.array
        parts: list[Traffic] = []
        for size in np.unique(source_size):
            part = self.book.mask(lanes & (source_size == size))
            if size == 0 or not part.count:
                continue
            data = self._gather(p, o, part, min(int(size), self.size))
            result = np.where(part.array, data, result)
            parts.append(self._cost(p, o, part))
        if len(parts) > 1:
            self._count_as_one(parts, self._cost(p, o, self._reading(source_size, mask)))
        return result

    def _cost(self, p: Pattern, o: int, mask: Mask) -> Traffic:
        p, low = self.book.under(p, mask)
        sectors = count_sectors(p, (o + low) & 31, self.wave.geometry)
        return Traffic(mask.warps, 0, sectors)

    def _count_as_one(self, parts: list[Traffic], whole: Traffic) -> None:
        """Lanes of different sizes are read apart, but they are one request of the hardware."""
        requests = whole.requests - sum(part.requests for part in parts)
        sectors = whole.sectors - sum(part.sectors for part in parts)
        self.source.tally(Traffic(requests, 0, sectors), self.source.buffer)

    def _gather(self, p: Pattern, o: int, mask: Mask | None, size: int | None = None):
        if mask is not None:
            p, low = self.book.under(p, mask)
            o += low
        if size is None or size == self.size:
            _, elements = self.source.reach(p, o)
            return elements.take(element_index(p, self.element.itemsize, self.count), mode="clip")
        short = GlobalSite(self.launch, self.instruction, 1, size, "u1")
        short.kind = short.race_kind = "cp_async"
        short.touched, short.align = self.source.touched, self.size
        short.begin_wave(self.wave)
        _, elements = short.reach(p, o)
        self.source.buffer = short.buffer
        parts = elements.take(element_index(p, 1, size), mode="clip")
        full = np.zeros((self.size, *parts.shape[1:]), np.uint8)
        full[:size] = parts
        packed = np.ascontiguousarray(np.moveaxis(full, 0, -1)).view(self.element)
        return np.moveaxis(packed, -1, 0)

    def land(self, copy: PendingCopy, mask: Mask | None) -> None:
        """The lanes of ``mask`` get their bytes; from now on the cells are plain writes."""
        p, o = copy.pattern, copy.offset
        if mask is not None:
            p, low = self.book.under(p, mask)
            o += low
        memory = self.memory
        start = o - SHARED_START
        memory.scatter(p, start, self.element, list(copy.data), mask)
        if memory.check:
            key = ("shared", self.size, start & 127, False)
            if key not in p.memo:
                p.memo[key] = SharedFacts(p, self.size, start & 127, memory)
            cells = p.memo[key].cells
            memory.shadow.land(cells, start // memory.granule, self.instruction.index)
