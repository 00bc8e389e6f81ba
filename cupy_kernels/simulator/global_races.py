"""Races between blocks in global memory, and the bytes of each array that were touched at all.

Blocks of one launch are not ordered, so two blocks may touch one cell only if both read it or
both use atomics. Accesses are compared when the launch is over, from the logs of the sites.
Kernels that pass flags between blocks (a fence, then an atomic) are ordered by those: see
``Fences``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .address_space import Buffer
from .addresses import Geometry, Mask
from .global_memory import Facts, GlobalSite

NEVER = -1
MANY = -2


class Fences:
    """Release and acquire points of blocks: a fence followed by an atomic, an atomic by a fence.

    Time advances at every atomic of a kernel that also has a device-wide fence. A block's access
    at time t happens before another block's access if the first block released after t and the
    second acquired after that. Locations are not compared, so races may be missed in such
    kernels, but correct protocols are never reported.
    """

    def __init__(self, active: bool):
        self.active = active
        self.time = 0
        self.releases: dict[int, list[int]] = {}
        self.acquires: dict[int, list[int]] = {}
        self.fenced: set[int] = set()
        self.wave = None
        self.flush = lambda: None  # collects the access logs up to now

    def blocks(self, mask: Mask | None) -> np.ndarray:
        """Absolute numbers of the blocks with an active lane."""
        first, count = self.wave.first_block, self.wave.geometry.blocks
        if mask is None or mask.array.shape[0] == 1:
            return np.arange(first, first + count)
        return first + np.flatnonzero(mask.array.any(axis=1))

    def fence(self, mask: Mask | None) -> None:
        """A device-wide fence by the lanes of ``mask``."""
        if self.active:
            self.fenced.update(self.blocks(mask).tolist())
            self.synchronise(mask)

    def atomic(self, mask: Mask | None, releases: bool = False) -> None:
        """An atomic or volatile access by the lanes of ``mask``; ``releases``: a fence is in it."""
        if self.active:
            if releases:
                self.fenced.update(self.blocks(mask).tolist())
            self.synchronise(mask)

    def synchronise(self, mask: Mask | None) -> None:
        """A point at which these blocks may release to and acquire from others."""
        self.flush()
        self.time += 1
        for block in self.blocks(mask).tolist():
            if block in self.fenced:
                self.releases.setdefault(block, []).append(self.time)
            self.acquires.setdefault(block, []).append(self.time)

    def ordered(self, first: int, first_time: int, second: int, second_time: int) -> bool:
        """True if ``first``'s access precedes ``second``'s by a flag."""
        release = next((t for t in self.releases.get(first, ()) if t >= first_time), None)
        if release is None:
            return False
        return any(release < t <= second_time for t in self.acquires.get(second, ()))


@dataclass
class Access:
    """All requests of one site with one pattern in one wave: where they started."""

    site: GlobalSite
    facts: Facts
    starts: np.ndarray
    first_block: int
    geometry: Geometry
    time: int

    def thread_at(self, block: int, cell: int, granule: int) -> int | None:
        """The first thread of ``block`` that touches ``cell``, or None."""
        p, shape = self.facts.pattern, self.geometry.shape
        row = block - self.first_block
        if not 0 <= row < shape[0]:
            return None
        rel = np.broadcast_to(p.rel, shape)[row]
        lanes = np.ones(shape[1], bool)
        if p.mask is not None:
            lanes = np.broadcast_to(p.mask.array, shape)[row]
        for start in self.starts:
            first = (rel + start) // granule
            last = (rel + start + self.facts.width - 1) // granule
            found = np.flatnonzero(lanes & (first <= cell) & (cell <= last))
            if len(found):
                return int(found[0])
        return None


def collect(sites: list[GlobalSite], wave, time: int) -> dict[Buffer, list[Access]]:
    """Take the sites' logs of one wave, fold their counters, and return accesses by buffer."""
    found: dict[Buffer, list[Access]] = {}
    for site in sites:
        for (facts, buffer), starts in site.touched.items():
            site.tally(facts.traffic, buffer, len(starts))
            unique = np.unique(np.array(starts, np.int64))
            access = Access(site, facts, unique, wave.first_block, wave.geometry, time)
            found.setdefault(buffer, []).append(access)
        site.touched.clear()
    return found


def relative_cells(facts: Facts, granule: int) -> np.ndarray:
    """Distinct granules of a pattern relative to its start, blocks ignored."""
    p = facts.pattern
    key = ("granules", facts.width, granule)
    if key not in p.memo:
        rel = p.rel if p.mask is None else _active(p)
        first = np.unique(rel) // granule
        steps = np.arange(-(-facts.width // granule))
        p.memo[key] = np.unique(first[:, None] + steps)
    return p.memo[key]


def _active(p) -> np.ndarray:
    rel, lanes = np.broadcast_arrays(p.rel, p.mask.array)
    return rel[lanes]


def block_cells(access: Access, granule: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct (block, granule) pairs relative to the start; blocks relative to the wave."""
    facts, p = access.facts, access.facts.pattern
    key = ("block granules", facts.width, granule)
    if key not in p.memo:
        shape = (access.geometry.blocks, p.rel.shape[1])
        rel = np.broadcast_to(p.rel, shape)
        if p.mask is not None:
            shape = access.geometry.shape
            lanes = np.broadcast_to(p.mask.array, shape)
            rel = np.broadcast_to(p.rel, shape)
            block = np.broadcast_to(np.arange(shape[0])[:, None], shape)[lanes]
            rel = rel[lanes]
        else:
            block = np.broadcast_to(np.arange(shape[0])[:, None], shape).ravel()
            rel = rel.ravel()
        steps = np.arange(-(-facts.width // granule))
        cells = (rel[:, None] // granule + steps).ravel()
        pairs = np.unique(np.repeat(block, len(steps)) << 40 | cells)
        p.memo[key] = (pairs >> 40, pairs & ((1 << 40) - 1))
    return p.memo[key]


class BufferHistory:
    """What one launch did to one buffer."""

    def __init__(self, buffer: Buffer, granule: int):
        self.buffer, self.granule = buffer, granule
        self.accesses: list[Access] = []

    @property
    def written(self) -> bool:
        """True if anything stored to it or updated it."""
        return any(a.site.race_kind in ("store", "atomic") for a in self.accesses)

    def touched_bytes(self, kinds: tuple[str, ...]) -> int:
        """Bytes touched at least once by accesses of these kinds."""
        granule = self.granule
        seen = np.zeros(self.buffer.size // granule + 2, bool)
        for access in self.accesses:
            if access.site.kind in kinds:
                cells = relative_cells(access.facts, granule)
                starts = access.starts // granule
                if len(cells) * len(starts) > 1 << 22:
                    for start in starts:
                        seen[cells + start] = True
                else:
                    seen[(starts[:, None] + cells).ravel()] = True
        return int(np.count_nonzero(seen)) * granule

    def race(self, fences: Fences) -> tuple | None:
        """The first conflict: (cell, first access, its block, second access, its block)."""
        if not self.written:
            return None
        cells = self.buffer.size // self.granule + 2
        for kinds in (("store",), ("atomic",)):
            owner = np.full(cells, NEVER, np.int64)
            source = np.full(cells, -1, np.int32)
            for n, access in enumerate(self.accesses):
                if access.site.race_kind in kinds:
                    clash = self._mark(access, n, owner, source, fences, kinds == ("atomic",))
                    if clash:
                        return clash
            if not (owner != NEVER).any():
                continue
            others = [
                (n, a)
                for n, a in enumerate(self.accesses)
                if a.site.race_kind not in kinds
                and (kinds == ("store",) or a.site.race_kind != "store")
            ]
            for n, access in others:
                clash = self._compare(access, n, owner, source, fences)
                if clash:
                    return clash
        return None

    def _each(self, access: Access):
        block, cell = block_cells(access, self.granule)
        block = block + access.first_block
        for start in access.starts // self.granule:
            yield block, cell + start

    def _mark(self, access, n, owner, source, fences, atomic: bool) -> tuple | None:
        for block, cell in self._each(access):
            before = owner[cell]
            clash = (before != NEVER) & (before != block)
            owner[cell] = block
            lost = owner[cell] != block
            if not atomic and (clash.any() or lost.any()):
                found = self._unordered(access, block, cell, clash, before, source, fences)
                if found:
                    return found
                if lost.any():
                    k = int(np.argmax(lost))
                    return (int(cell[k]), access, int(block[k]), access, int(owner[cell[k]]))
            if atomic:
                owner[cell[clash | lost]] = MANY
            source[cell] = n
        return None

    def _compare(self, access, n, owner, source, fences) -> tuple | None:
        for block, cell in self._each(access):
            before = owner[cell]
            clash = (before != NEVER) & (before != block)
            if clash.any():
                found = self._unordered(access, block, cell, clash, before, source, fences)
                if found:
                    return found
        return None

    def _unordered(self, access, block, cell, clash, before, source, fences) -> tuple | None:
        for k in np.flatnonzero(clash):
            other = self.accesses[source[cell[k]]]
            if access.site.kind == "load" and "cas" in other.site.instruction.modifiers:
                continue  # a first guess for a compare-and-swap loop may be stale
            if fences.active and before[k] != MANY:
                a, b = (int(before[k]), other.time), (int(block[k]), access.time)
                if fences.ordered(*a, *b) or fences.ordered(*b, *a):
                    continue
            elif fences.active:
                continue
            return (int(cell[k]), other, int(before[k]), access, int(block[k]))
        return None
