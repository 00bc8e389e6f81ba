"""Generic accesses: the state space is found from the address, per lane if it must be."""

from __future__ import annotations

import numpy as np

from .address_space import LOCAL_BASE, SHARED_BASE, window_of
from .addresses import Mask, Pattern
from .global_memory import GlobalLoad, GlobalStore
from .local_memory import LocalLoad, LocalStore
from .ptx import Instruction
from .shared_memory import SharedLoad, SharedStore

BASE = {"global": 0, "shared": SHARED_BASE, "local": LOCAL_BASE}


def windows(book, p: Pattern, o: int, mask: Mask | None):
    """Yield (space, mask) for each space that the lanes point to; usually just one."""
    q, low = (p, 0) if mask is None else book.under(p, mask)
    first, last = window_of(o + low), window_of(o + low + q.span)
    if first == last:
        yield first, mask
        return
    lanes = np.ones((1, 1), bool) if mask is None else mask.array
    address = p.rel + o
    shared = (address >> 40) == SHARED_BASE >> 40
    local = (address >> 40) == LOCAL_BASE >> 40
    for space, part in (("shared", shared), ("local", local), ("global", ~(shared | local))):
        part = part & lanes
        if part.any():
            yield space, book.mask(part)


class _GenericSite:
    kinds: tuple = ()

    def __init__(self, launch, instruction: Instruction, width: int, count: int, dtype):
        self.count, self.dtype = count, np.dtype(dtype)
        self.sites = {
            space: kind(launch, instruction, width, count, dtype)
            for space, kind in zip(("global", "shared", "local"), self.kinds, strict=True)
        }

    def begin_wave(self, wave) -> None:
        """Bind all three sites to a new wave."""
        self.book = wave.book
        for site in self.sites.values():
            site.begin_wave(wave)


class GenericLoad(_GenericSite):
    """``ld`` without a state space."""

    kinds = (GlobalLoad, SharedLoad, LocalLoad)

    def __call__(self, p: Pattern, o: int, mask: Mask | None = None) -> np.ndarray:
        """Return the loaded elements of every lane; ``mask`` None means all lanes."""
        result = np.zeros((self.count, 1, 1), self.dtype)
        if mask is not None and not mask.count:
            return result
        for space, part in windows(self.book, p, o, mask):
            value = self.sites[space](p, o - BASE[space], part)
            result = value if part is mask else np.where(part.array, value, result)
        return result


class GenericStore(_GenericSite):
    """``st`` without a state space."""

    kinds = (GlobalStore, SharedStore, LocalStore)

    def __call__(self, p: Pattern, o: int, mask: Mask | None, *values: np.ndarray) -> None:
        """Store one array per element for the lanes of ``mask`` (None: all)."""
        if mask is not None and not mask.count:
            return
        for space, part in windows(self.book, p, o, mask):
            self.sites[space](p, o - BASE[space], part, *values)
