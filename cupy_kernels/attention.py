"""The attention problem a kernel is handed: shapes, dtype and scale, checked before any launch."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Attention:
    """Sizes of one attention call: q (batch, heads, Nq, d), k and v (batch, kv_heads, Nk, d).

    Query head h reads kv head h // (heads // kv_heads). A causal mask is aligned bottom-right.
    """

    batch: int
    heads: int
    kv_heads: int
    Nq: int
    Nk: int
    d: int
    dtype: np.dtype
    scale: float
    causal: bool

    @classmethod
    def of(cls, q, k, v, causal: bool, scale: float | None) -> "Attention":
        """Check the three arrays against each other; `scale=None` means 1/√d.

        Raises ValueError or TypeError in one line that names the array.
        """
        for name, array in (("q", q), ("k", k), ("v", v)):
            if getattr(array, "ndim", 0) != 4:
                shape = getattr(array, "shape", type(array).__name__)
                raise ValueError(f"{name} is {shape}, not (batch, heads, N, d)")
            if array.dtype != q.dtype:
                raise TypeError(f"{name} is {array.dtype} and q is {q.dtype}: one dtype for all")
            if 0 in array.shape:
                raise ValueError(f"{name} has shape {array.shape}: no size may be 0")
        batch, heads, Nq, d = q.shape
        kv_heads, Nk = k.shape[1:3]
        if k.shape != v.shape:
            raise ValueError(f"k {k.shape} and v {v.shape} differ in shape")
        if (k.shape[0], k.shape[3]) != (batch, d):
            raise ValueError(f"q {q.shape} and k {k.shape} differ in batch or d")
        if heads % kv_heads:
            raise ValueError(f"{kv_heads} kv heads do not divide {heads} query heads")
        scale = 1 / math.sqrt(d) if scale is None else float(scale)
        return cls(batch, heads, kv_heads, Nq, Nk, d, q.dtype, scale, bool(causal))


def cdiv(n: int, tile: int) -> int:
    """How many tiles cover n: n / tile, rounded up."""
    return -(-n // tile)
