"""Shadow stamps of shared memory: who wrote and who read each cell, and when.

A cell is the narrowest access of the kernel (1, 2 or 4 bytes). Its last write and last read are
64-bit words; −1 means never. From the high bits down:

    pending (1) | time (32) | instruction (16) | flags (4) | thread (10)

Reads are only logged; they are written into the shadow when a later write overlaps them before
the next barrier, which in tiled kernels hardly ever happens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .addresses import Geometry, Pattern
from .ordering import Ordering

TIME, INSTRUCTION = 30, 14
THREAD_MASK = 0x3FF
MANY_LANES, MANY_WARPS, ATOMIC = (1 << bit for bit in (10, 11, 12))
PENDING = 1 << 62  # above the time, so that it never looks old


class Cells:
    """The cells that a pattern touches, one entry per distinct cell (of a block).

    ``offsets``: the same pattern at several byte offsets, as one access.
    """

    def __init__(
        self,
        pattern: Pattern,
        width: int,
        granule: int,
        geometry: Geometry,
        stride: int,
        offsets: tuple[int, ...] = (0,),
    ):
        rel = np.broadcast_to(pattern.rel, (pattern.rel.shape[0], geometry.threads))
        active = None if pattern.mask is None else np.broadcast_to(pattern.mask.array, rel.shape)
        self.rows = rel.shape[0]
        steps = np.arange(max(1, width // granule))
        steps = np.unique(np.add.outer(np.array(offsets) // granule, steps))
        cells = (rel[:, :, None] // granule + steps).reshape(self.rows, -1)
        threads = np.repeat(np.arange(geometry.threads), len(steps))
        threads = np.broadcast_to(threads, cells.shape)
        rows = np.broadcast_to(np.arange(self.rows)[:, None], cells.shape)
        keep = np.ones(cells.shape, bool)
        if active is not None:
            keep = np.repeat(active, len(steps), axis=1)
        elif geometry.real_threads != geometry.threads:
            keep = threads < geometry.real_threads
        self.lane_cells, self.lane_threads, self.lane_rows = cells[keep], threads[keep], rows[keep]
        self.span = int(self.lane_cells.max()) + 1 if self.lane_cells.size else 0
        self._reduce(stride)

    def _reduce(self, stride: int) -> None:
        keys = self.lane_rows * stride + self.lane_cells
        order = np.lexsort((self.lane_threads, keys))
        keys, threads = keys[order], self.lane_threads[order]
        first = np.ones(len(keys), bool)
        first[1:] = keys[1:] != keys[:-1]
        last = np.ones(len(keys), bool)
        last[:-1] = first[1:]
        low, high = threads[first], threads[last]
        self.index = keys[first]
        self.row = self.index // stride
        self.thread = high.astype(np.int64)
        flags = np.where(low != high, MANY_LANES, 0)
        self.words = self.thread | flags | np.where(low >> 5 != high >> 5, MANY_WARPS, 0)
        self.collide = bool((low != high).any())


@dataclass
class Clash:
    """A conflict found by the shadow: the cell, both threads, and the old stamp's parts."""

    reason: str  # uninitialised, pending, after write, after read
    row: int
    cell: int
    thread: int
    others: int
    old_thread: int = 0
    old_instruction: int = 0
    several: bool = False


class Shadow:
    """Stamps of the shared memory of one wave; one row while all blocks behave alike."""

    def __init__(self, cells: int, geometry: Geometry, ordering: Ordering):
        self.cells, self.geometry, self.ordering = cells, geometry, ordering
        self.rows = 1
        self.writes = np.full(cells, -1, np.int64)
        self.reads = np.full(cells, -1, np.int64)
        self.log: list[tuple] = []
        self.log_time = 0
        self.latest_read = 0
        self._alias()

    def _alias(self) -> None:
        self.unsigned_writes = self.writes.view(np.uint64)

    def make_room(self) -> None:
        """Keep one row per block from now on if blocks differ in this access or in order."""
        if self.rows == 1 and self.geometry.blocks > 1:
            self.rows = self.geometry.blocks
            self.writes = np.tile(self.writes, self.rows)
            self.reads = np.tile(self.reads, self.rows)
            self._alias()

    def _where(self, touched: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Flat indices, accessing threads' words and rows, per shadow row."""
        if touched.rows == self.rows:
            return touched.index, touched.words, touched.row
        rows = np.arange(self.rows)[:, None]
        index = (touched.index + rows * self.cells).ravel()
        return index, np.tile(touched.words, self.rows), np.repeat(rows, len(touched.index))

    def read(self, touched: Cells, first: int, instruction: int, atomic: int = 0) -> Clash | None:
        """Check a read of the cells from ``first`` on and log it."""
        if touched.rows > self.rows or not self.ordering.alike:
            self.make_room()
        index = touched.index if touched.rows == self.rows else self._where(touched)[0]
        stamps = self.unsigned_writes[first:].take(index, mode="clip")
        if stamps.size and int(np.maximum.reduce(stamps)) >= self.ordering.all_blocks << TIME:
            clash = self._examine(touched, first, self.writes, "after write", True, atomic)
            if clash:
                return clash
        if self.log_time != self.ordering.all_blocks:
            self.log.clear()
            self.log_time = self.ordering.all_blocks
        self.log.append((first, first + touched.span, touched, self.ordering.time, instruction))
        return None

    def write(
        self,
        touched: Cells,
        first: int,
        instruction: int,
        flags: int = 0,
        must_be_written: bool = False,
    ) -> Clash | None:
        """Check a write against earlier writes and reads, then stamp it.

        An atomic also reads: it passes ``ATOMIC`` and ``must_be_written``.
        """
        if touched.rows > self.rows or not self.ordering.alike:
            self.make_room()
        index, words, _ = self._where(touched)
        limit = self.ordering.all_blocks << TIME
        self._settle_reads(first, first + touched.span)
        stamps = self.writes[first:].take(index, mode="clip")
        atomic = flags & ATOMIC
        clash = None
        suspicious = must_be_written and stamps.size and int(stamps.min()) < 0
        if suspicious or (stamps.size and int(stamps.max()) >= limit):
            clash = self._examine(
                touched, first, self.writes, "after write", must_be_written, atomic
            )
        if clash is None and self.latest_read >= self.ordering.all_blocks:
            clash = self._examine(touched, first, self.reads, "after read", False, 0)
        stamp = (self.ordering.time << TIME) | (instruction << INSTRUCTION) | flags
        self.writes[first:][index] = words | stamp
        return clash

    def land(self, touched: Cells, first: int, instruction: int) -> None:
        """An asynchronous copy completes: its cells become plain writes of the issuing lanes."""
        if touched.rows > self.rows or not self.ordering.alike:
            self.make_room()
        index, words, _ = self._where(touched)
        stamp = (self.ordering.time << TIME) | (instruction << INSTRUCTION)
        self.writes[first:][index] = words | stamp

    def _settle_reads(self, first: int, last: int) -> None:
        """Write logged reads that overlap [first, last) into the shadow."""
        if not self.log:
            return
        if self.log_time != self.ordering.all_blocks:
            self.log.clear()
            return
        waiting = []
        for entry in self.log:
            if entry[0] < last and first < entry[1]:
                self._stamp_read(*entry)
            else:
                waiting.append(entry)
        self.log = waiting

    def _stamp_read(self, first: int, _last: int, touched: Cells, time: int, instruction: int):
        index, words, rows = self._where(touched)
        old = self.reads[first:].take(index, mode="clip")
        recent = old >> TIME >= self.ordering.block_sync[rows.ravel(), 0]
        other = recent & (old & THREAD_MASK != words & THREAD_MASK)
        far = recent & ((old & THREAD_MASK) >> 5 != (words & THREAD_MASK) >> 5)
        new = words | np.where(other, MANY_LANES, 0) | np.where(far, MANY_WARPS, 0)
        new |= np.where(recent, old & (MANY_LANES | MANY_WARPS), 0)
        self.reads[first:][index] = new | (time << TIME) | (instruction << INSTRUCTION)
        self.latest_read = max(self.latest_read, time)

    def _examine(
        self, touched: Cells, first: int, stamps: np.ndarray, reason: str, reading: bool, atomic
    ) -> Clash | None:
        """The full rule, lane by lane; return the first conflict."""
        rows, cells, threads = touched.lane_rows, touched.lane_cells, touched.lane_threads
        if touched.rows < self.rows:
            count = len(cells)
            rows = np.repeat(np.arange(self.rows), count)
            cells, threads = np.tile(cells, self.rows), np.tile(threads, self.rows)
        at = (rows if self.rows > 1 else np.zeros_like(rows)) * self.cells + cells + first
        old = stamps[at]
        never = old < 0
        old = np.where(never, 0, old)
        pending = old & PENDING != 0
        old = old & ~PENDING
        own = (old & THREAD_MASK == threads) & (old & (MANY_LANES | MANY_WARPS) == 0)
        several = old & MANY_WARPS != 0
        fine = (
            never
            | own
            | self.ordering.ordered(old >> TIME, old & THREAD_MASK, several, rows, threads)
        )
        if atomic:
            fine |= old & ATOMIC != 0
        bad = ~fine | pending
        if reading:
            bad |= never
        if not bad.any():
            return None
        n = int(np.argmax(bad))
        stamp = int(old[n])
        kind = "uninitialised" if never[n] else "pending" if pending[n] else reason
        return Clash(
            kind,
            int(rows[n]),
            int(cells[n] + first),
            int(threads[n]),
            len(np.unique((rows * 1024 + threads)[bad])) - 1,
            stamp & THREAD_MASK,
            (stamp >> INSTRUCTION) & 0xFFFF,
            bool(stamp & (MANY_LANES | MANY_WARPS)),
        )
