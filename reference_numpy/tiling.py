"""Cutting rows into tiles, and the causal mask of one tile.

Everything here is index arithmetic: no data moves. A tile is a `slice` of rows, so that
`Q[rows]` reads like the paper's Q_i.
"""

from collections.abc import Iterator

import numpy as np


def cdiv(a: int, b: int) -> int:
    """Ceiling division ⌈a / b⌉: how many tiles of b rows cover a rows."""
    return -(-a // b)


def tiles(N: int, B: int) -> Iterator[slice]:
    """The ⌈N / B⌉ slices of B rows that cover N rows; the last may be shorter.

    >>> list(tiles(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    if B < 1:
        raise ValueError(f"tile size B = {B}: it must be at least 1")
    for start in range(0, N, B):
        yield slice(start, min(start + B, N))


def visible(rows: slice, cols: slice, Nq: int, Nk: int) -> np.ndarray:
    """Which keys of one tile each query may see under a causal mask, shape (Br, Bc), bool.

    The mask is aligned bottom-right, as in FlashAttention ≥ 2.1: the last query sees the last
    key, so query i sees key j when j ≤ i + (Nk − Nq).
    """
    i = np.arange(rows.start, rows.stop)[:, None]
    j = np.arange(cols.start, cols.stop)[None, :]
    return j <= i + (Nk - Nq)


def fully_masked(rows: slice, cols: slice, Nq: int, Nk: int) -> bool:
    """True when no query of the tile sees any of its keys: a causal kernel never visits it."""
    last_query = rows.stop - 1
    return cols.start > last_query + (Nk - Nq)


def mask_scores(s: np.ndarray, rows: slice, cols: slice, Nq: int, Nk: int) -> np.ndarray:
    """Scores of one tile, (Br, Bc), with every key that the query may not see set to −∞."""
    return np.where(visible(rows, cols, Nq, Nk), s, np.float32(-np.inf))
