"""atom and red: indivisible updates, carried out lane by lane in lane order."""

from __future__ import annotations

import numpy as np

from .address_space import SHARED_BASE
from .addresses import Mask, Pattern
from .formats import maximum, minimum
from .generic_memory import windows
from .global_memory import GlobalSite, element_index
from .instructions.floating import half_binary
from .ptx import Instruction
from .shadow import ATOMIC
from .shared_memory import SharedSite

_WHOLE = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}


def combine(operation: str, kind: str, old, value, other):
    """The new contents of a cell."""
    if kind in ("f16", "bf16", "f16x2", "bf16x2") and operation in ("add", "min", "max"):
        function = {"add": np.add, "min": minimum, "max": maximum}[operation]
        return half_binary(function, old, value, kind)
    if operation in _WHOLE:
        return _WHOLE[operation](old, value)
    if operation == "exch":
        return value
    if operation == "cas":
        return np.where(old == value, other, old)
    if operation == "inc":
        return np.where(old >= value, 0, old + old.dtype.type(1)).astype(old.dtype)
    return np.where((old == 0) | (old > value), value, old - old.dtype.type(1)).astype(old.dtype)


def ranks(index: np.ndarray) -> np.ndarray:
    """For each lane, how many lanes before it go to the same cell."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.ones(len(index), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    position = np.arange(len(index)) - np.repeat(starts, np.diff(np.append(starts, len(index))))
    result = np.empty(len(index), np.int64)
    result[order] = position
    return result


def update(target, index, operation: str, kind: str, value, other, want_old: bool):
    """Apply one atomic per entry of ``index`` in order; return the old values."""
    is_half = kind in ("f16", "bf16", "f16x2", "bf16x2")
    if not want_old and operation in _WHOLE and not is_half:
        _WHOLE[operation].at(target, index, value)
        return None
    old = np.empty(len(index), target.dtype)
    rank = ranks(index)
    for turn in range(int(rank.max()) + 1 if len(rank) else 0):
        now = rank == turn
        cells = index[now]
        before = target[cells]
        old[now] = before
        target[cells] = combine(operation, kind, before, value[now], other[now])
    return old


class AtomicSite:
    """One atom or red instruction, in global, shared or generic space."""

    def __init__(
        self,
        launch,
        instruction: Instruction,
        dtype: str,
        count: int,
        operation: str,
        space: str,
        want_old: bool,
    ):
        self.launch, self.instruction = launch, instruction
        self.dtype = np.dtype(dtype)
        self.count, self.operation, self.want_old = count, operation, want_old
        self.kind, self.space = instruction.type, space
        width = self.dtype.itemsize
        self.on_global = GlobalSite(launch, instruction, width, count, dtype)
        self.on_global.kind = self.on_global.race_kind = "atomic"
        self.releases = not {"release", "acq_rel", "acquire"}.isdisjoint(instruction.modifiers)
        self.on_shared = SharedSite(launch, instruction, width, count, dtype)
        self.on_shared.reading = False
        self.sites = {"global": self.on_global, "shared": self.on_shared}

    def begin_wave(self, wave) -> None:
        """Bind to a new wave."""
        self.book, self.geometry, self.memory = wave.book, wave.geometry, wave.shared
        self.on_global.begin_wave(wave)
        self.on_shared.begin_wave(wave)

    def __call__(self, p: Pattern, o: int, mask: Mask | None, *values: np.ndarray):
        """Update the active lanes' cells; return the old values, shape (count, rows, columns)."""
        result = np.zeros((self.count, *self.geometry.shape), self.dtype)
        if mask is not None and not mask.count:
            return result
        if self.space:
            parts = [(self.space, mask, o)]
        else:
            parts = [
                (space, part, o - SHARED_BASE if space == "shared" else o)
                for space, part in windows(self.book, p, o, mask)
            ]
        for space, part, start in parts:
            q, low = (p, 0) if part is None else self.book.under(p, part)
            reach = self.reach_shared if space == "shared" else self.reach_global
            target, index = reach(q, start + low)
            self.apply(target, index, part, values, result)
        return result

    def reach_global(self, p: Pattern, o: int):
        """Check the global request; return elements and their indices."""
        self.launch.fences.atomic(p.mask, self.releases)
        _, elements = self.on_global.reach(p, o)
        return elements, element_index(p, self.dtype.itemsize, self.count)

    def reach_shared(self, p: Pattern, o: int):
        """Check the shared request; return elements and their indices."""
        facts, start = self.on_shared.reach(p, o)
        memory = self.memory
        if memory.check:
            clash = memory.shadow.write(
                facts.cells, start // memory.granule, self.instruction.index, ATOMIC, True
            )
            if clash is not None:
                raise self.on_shared.clash(clash)
        flat = memory.view(self.dtype).reshape(-1)[start // self.dtype.itemsize :]
        return flat, memory.flat_index(p, self.dtype.itemsize, self.count)

    def apply(self, target, index, mask: Mask | None, values, result) -> None:
        """Update every active lane's cells; fill ``result`` with the old values."""
        shape = self.geometry.shape
        lanes = np.ones(shape, bool) if mask is None else np.broadcast_to(mask.array, shape)
        flat = [np.broadcast_to(v, shape)[lanes] for v in values]
        for n in range(self.count):
            other = flat[n + self.count] if len(flat) > self.count else flat[n]
            cells = np.broadcast_to(index[n], shape)[lanes]
            old = update(target, cells, self.operation, self.kind, flat[n], other, self.want_old)
            if old is not None:
                result[n][lanes] = old
