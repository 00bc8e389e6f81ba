"""Softmax over tiles that are seen one after the other (Milakov & Gimelshein 2018).

Three numbers describe any part of a row: its maximum m, its denominator l = Σ e^(s − m), and,
when values are averaged, the sum o = Σ e^(s − m)·v, not yet divided by l. Two parts join by
bringing both to the larger maximum; this is all that FlashAttention adds to softmax.
"""

import numpy as np


def shifted_exp(s: np.ndarray, m: np.ndarray) -> np.ndarray:
    """e^(s − m), broadcast, and 0 where s = −∞.

    A masked score contributes nothing, also in a row whose maximum is −∞ because every key is
    masked: there −∞ − (−∞) would be NaN.
    """
    with np.errstate(invalid="ignore"):
        return np.where(s == -np.inf, np.float32(0), np.exp(s - m))


def log_sum_exp(m: np.ndarray, l: np.ndarray) -> np.ndarray:
    """LSE = m + ln l, and −∞ for a row that saw no key (l = 0)."""
    with np.errstate(divide="ignore"):
        return m + np.log(l)


def divide_rows(o: np.ndarray, l: np.ndarray) -> np.ndarray:
    """O = o / l for each row of o, shape (Br, d); a row that saw no key (l = 0) gives 0."""
    return o / np.where(l == 0, np.float32(1), l)[:, None]


def online_softmax(
    tiles: list[np.ndarray],
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Softmax of rows that arrive in tiles of columns: one sweep for m and l, one for P.

    Args:
        tiles: score tiles of the same rows, each (rows, Bc).

    Returns:
        m: maximum of each row, shape (rows,).
        l: denominator Σ e^(s − m) of each row, shape (rows,).
        p_tiles: the softmax, cut like `tiles`.

    Source: FlashAttention, section 3.1.
    """
    # First sweep, tile by tile: m and l of all the scores seen so far.
    ### BEGIN SOLUTION
    m, l = np.float32(-np.inf), np.float32(0)
    for s in tiles:
        m_new = np.maximum(m, s.max(axis=-1))
        p = shifted_exp(s, m_new[..., None])
        l = shifted_exp(m, m_new) * l + p.sum(axis=-1)
        m = m_new
    ### END SOLUTION
    # Second sweep: m and l are final now, and every tile of scores becomes one of P.
    ### BEGIN SOLUTION
    p_tiles = [shifted_exp(s, m[..., None]) / l[..., None] for s in tiles]
    ### END SOLUTION
    return m, l, p_tiles


State = tuple[np.ndarray, np.ndarray, np.ndarray]


def merge(a: State, b: State) -> State:
    """Join the states of two disjoint sets of keys, seen by the same query rows.

    Args:
        a, b: (m, l, o) with m and l of shape (rows,) and o = Σ e^(s − m)·v of shape (rows, d).

    Returns:
        The (m, l, o) of all the keys together. Associative and commutative; a part without keys
        is (−∞, 0, 0).

    Source: FlashAttention, section 3.1; Flash-Decoding joins its splits with it.
    """
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    # The common maximum; the factor that brings each part to it; the two sums.
    ### BEGIN SOLUTION
    m = np.maximum(m_a, m_b)
    scale_a, scale_b = shifted_exp(m_a, m), shifted_exp(m_b, m)
    l = scale_a * l_a + scale_b * l_b
    o = scale_a[..., None] * o_a + scale_b[..., None] * o_b
    ### END SOLUTION
    return m, l, o
