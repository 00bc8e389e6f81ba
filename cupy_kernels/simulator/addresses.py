"""Lane addresses as *pattern + offset*: why a memory access in a loop costs little to check.

A register that feeds addresses holds a pair: an interned ``Pattern`` (the lanes' byte addresses
relative to the lowest one, immutable) and a Python integer. Adding a uniform value only changes
the integer, so bounds, alignment, sectors and bank conflicts of a pattern are worked out once and
remembered under the offset's low bits.

Shapes. A wave is ``blocks`` × ``threads`` lanes. A value that is equal in all blocks has one row,
one that is equal in all threads of a block has one column; NumPy broadcasting does the rest.
"""

from __future__ import annotations

import numpy as np

_INTERN_BYTES = 256 << 20


class Geometry:
    """Shape of a wave: ``blocks`` rows of ``threads`` lanes, padded to whole warps."""

    def __init__(self, blocks: int, threads: int):
        self.blocks, self.real_threads = blocks, threads
        self.warps = -(-threads // 32)
        self.threads = self.warps * 32
        self.shape = (blocks, self.threads)

    @property
    def all_warps(self) -> int:
        """Warps in the whole wave."""
        return self.blocks * self.warps

    def repeats(self, array: np.ndarray) -> int:
        """How many blocks one row of ``array`` stands for."""
        return self.blocks if array.shape[0] == 1 else 1

    def by_warp(self, array: np.ndarray) -> np.ndarray:
        """Shape (rows, warps, 32); a one-column value is spread over the lanes."""
        rows = array.shape[0]
        if array.shape[1] != self.threads:
            array = np.broadcast_to(array, (rows, self.threads))
        return array.reshape(rows, self.warps, 32)


class Mask:
    """A set of lanes; ``array`` is bool with one row if it is the same in every block."""

    __slots__ = ("array", "count", "key", "memo", "warps")

    def __init__(self, array: np.ndarray, key: int, geometry: Geometry):
        self.array, self.key = array, key
        spread = geometry.by_warp(array)
        repeats = geometry.repeats(array)
        self.count = int(np.count_nonzero(spread)) * repeats
        self.warps = int(np.count_nonzero(spread.any(axis=2))) * repeats
        self.memo: dict = {}


class Pattern:
    """Relative lane addresses (int64, lowest active = 0) and everything derived from them.

    ``mask`` is None when every lane takes part; inactive lanes hold 0.
    """

    __slots__ = ("mask", "masked", "memo", "rel", "span", "sums")

    def __init__(self, rel: np.ndarray, mask: Mask | None = None):
        self.rel, self.mask = rel, mask
        self.span = int(rel.max()) if rel.size else 0
        self.memo: dict = {}
        self.masked: dict = {}
        self.sums: dict = {}


class AddressBook:
    """Interns patterns and masks of one wave shape; the arithmetic of pattern + offset."""

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        self.zero = Pattern(np.zeros((1, 1), np.int64))
        self._patterns: dict = {}
        self._masks: dict = {}
        self._bytes = 0

    def mask(self, array: np.ndarray) -> Mask:
        """Return the one ``Mask`` with this content."""
        array = self.geometry.by_warp(array).reshape(array.shape[0], -1)
        key = (array.shape[0], array.tobytes())
        found = self._masks.get(key)
        if found is None:
            found = self._masks[key] = Mask(array, len(self._masks) + 1, self.geometry)
        return found

    def root(self, array: np.ndarray) -> tuple[Pattern, int]:
        """Pattern and offset of a register value (32-bit values are taken as signed)."""
        if array.size == 1:
            return self.zero, int(array.item())
        vec = array.astype(np.int64)
        low = int(vec.min())
        return self.intern(vec - low), low

    def intern(self, rel: np.ndarray) -> Pattern:
        """Return the one unmasked ``Pattern`` with these relative addresses."""
        key = (rel.shape, rel.tobytes())
        found = self._patterns.get(key)
        if found is None:
            if self._bytes > _INTERN_BYTES:
                self._patterns.clear()
                self._bytes = 0
            found = self._patterns[key] = Pattern(rel)
            self._bytes += rel.nbytes * 4
        return found

    def add(self, p: Pattern, o: int, q: Pattern, r: int) -> tuple[Pattern, int]:
        """``(p + o) + (q + r)``."""
        if q is self.zero:
            return p, o + r
        if p is self.zero:
            return q, o + r
        found = p.sums.get(id(q))
        if found is None:
            pattern, low = self.root(p.rel + q.rel)
            found = p.sums[id(q)] = (pattern, low, q)
        return found[0], found[1] + o + r

    def sub(self, p: Pattern, o: int, q: Pattern, r: int) -> tuple[Pattern, int]:
        """``(p + o) - (q + r)``."""
        if q is self.zero:
            return p, o - r
        pattern, low = self.root(p.rel - q.rel)
        return pattern, low + o - r

    def value(self, p: Pattern, o: int, dtype) -> np.ndarray:
        """The register's value as an array of ``dtype`` (wrapping like the hardware)."""
        wide = np.int64 if np.dtype(dtype).itemsize == 8 else np.int32
        low = ((o + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
        return (p.rel + np.int64(low)).astype(wide).view(dtype)

    def merge(self, lanes: np.ndarray, new: tuple, old: tuple | None) -> tuple[Pattern, int]:
        """New pair where ``lanes`` is set, old pair elsewhere (None: never defined)."""
        if old is None or (old[0] is new[0] and old[1] == new[1]):
            return new
        return self.root(np.where(lanes, new[0].rel + new[1], old[0].rel + old[1]))

    def under(self, p: Pattern, mask: Mask) -> tuple[Pattern, int]:
        """``p`` restricted to ``mask``: (pattern of the active lanes, shift to add)."""
        found = p.masked.get(mask.key)
        if found is None:
            rel, lanes = np.broadcast_arrays(p.rel, mask.array)
            active = rel[lanes]
            low = int(active.min()) if active.size else 0
            found = (Pattern(np.where(lanes, rel - low, 0), mask), low)
            p.masked[mask.key] = found
        return found
