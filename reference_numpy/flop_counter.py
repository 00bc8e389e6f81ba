"""Counting the floating-point operations that a kernel on the model machine really performs.

A tile loaded from a `CountingMachine` takes its operations down as NumPy carries them out, and so
does everything computed from it: what `flops.py` says in closed form, this counts. Arithmetic
among constants that no tile has touched is not seen.

    machine = CountingMachine()
    q, k = machine.hbm("Q", Q)[0:32], machine.hbm("K", K)[0:16]
    s = 0.125 * (q @ k.T)
    machine.flops.matmul            # 2 · 32 · 16 · 64
    machine.flops.elementwise       # {"multiply": 32 · 16}
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from reference_numpy.machine import SRAM_BYTES, HbmArray, Machine, Region

# What counts as one FLOP for each element: arithmetic on floating-point numbers. Comparisons,
# selections do not; they guard the −∞ of masked scores.
ARITHMETIC = frozenset(
    {
        *(np.add, np.subtract, np.multiply, np.divide, np.negative, np.reciprocal),
        *(np.maximum, np.minimum, np.sqrt, np.exp, np.exp2, np.log, np.log2),
    }
)


@dataclass
class Flops:
    """FLOPs so far: `matmul` (a multiply-add is two), and the others by NumPy's name for them."""

    matmul: int = 0
    elementwise: Counter = field(default_factory=Counter)

    @property
    def non_matmul(self) -> int:
        """FLOPs outside matrix products."""
        return self.elementwise.total()

    def take_down(self, ufunc: np.ufunc, method: str, inputs: tuple, result: np.ndarray) -> None:
        """Count one NumPy operation: an element each, and n − 1 to reduce n to one."""
        if ufunc is np.matmul:
            self.matmul += 2 * np.size(result) * np.shape(inputs[0])[-1]
        elif ufunc in ARITHMETIC:
            spared = np.size(result) if method == "reduce" else 0
            elements = np.size(inputs[0]) if method == "reduce" else np.size(result)
            self.elementwise[ufunc.__name__] += elements - spared


class CountedTile(np.ndarray):
    """A tile whose operations are taken down in `flops`; results of them are counted tiles too."""

    flops: Flops

    def __array_finalize__(self, source) -> None:
        self.flops = getattr(source, "flops", None)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        if out is not None:
            keywords["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **keywords)
        self.flops.take_down(ufunc, method, inputs, result)
        return out[0] if out is not None else _counted(result, self.flops)

    def __array_function__(self, function, types, arguments, keywords):
        # np.where and its kin forget the subclass; what they return is still this tile's data.
        result = super().__array_function__(function, types, arguments, keywords)
        return _counted(result, self.flops) if isinstance(result, np.ndarray) else result


def _plain(x):
    return x.view(np.ndarray) if isinstance(x, CountedTile) else x


def _counted(values, flops: Flops) -> CountedTile:
    tile = np.asarray(values).view(CountedTile)
    tile.flops = flops
    return tile


class CountingMachine(Machine):
    """A model machine that counts FLOPs beside bytes: `machine.flops`.

    Args:
        sram_bytes: capacity of SRAM for loaded tiles, in bytes.
    """

    def __init__(self, sram_bytes: int = SRAM_BYTES):
        super().__init__(sram_bytes)
        self.flops = Flops()

    def load(self, array: HbmArray, region: Region) -> np.ndarray:
        """Bring a region on chip, metered, as a tile that counts what is done with it."""
        return _counted(super().load(array, region), self.flops)
