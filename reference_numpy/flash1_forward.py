"""FlashAttention-1: K and V stay on chip, the queries stream past.

FlashAttention (2205.14135), Algorithm 1. The outer loop loads each K, V tile once; for every
tile of queries it reads back O, l and m, mixes the new keys in, and writes them again. S and P
exist one tile at a time and never see HBM.
"""

import numpy as np

from reference_numpy.machine import HbmArray, Machine
from reference_numpy.online_softmax import divide_rows, log_sum_exp, shifted_exp
from reference_numpy.tiling import cdiv, fully_masked, mask_scores, tiles


def paper_tile_sizes(sram_elements: int, d: int) -> tuple[int, int]:
    """(Br, Bc) that Algorithm 1 chooses for an SRAM of M elements: Bc = ⌈M/4d⌉, Br = min(Bc, d).

    Four tiles of Bc rows (Q, K, V, O) share the chip.
    """
    Bc = cdiv(sram_elements, 4 * d)
    return min(Bc, d), Bc


def flash1_forward(
    machine: Machine,
    Q: HbmArray,
    K: HbmArray,
    V: HbmArray,
    O: HbmArray,
    l: HbmArray,
    m: HbmArray,
    LSE: HbmArray,
    *,
    Br: int,
    Bc: int,
    scale: float,
    causal: bool,
) -> None:
    """Attention with K and V in the outer loop.

    Args:
        machine: where the tiles are loaded, stored and metered.
        Q, O: (Nq, d) in HBM; O is the result, normalised after every pass.
        K, V: (Nk, d) in HBM.
        l, m: (Nq,) in HBM, the running denominator and maximum of each query.
        LSE: (Nq,) in HBM, m + ln l, written once.
        Br, Bc: query rows and key rows of a tile.
        scale: factor on the scores, usually 1/√d.
        causal: hide later keys, aligned bottom-right; fully masked tiles are not visited.

    Source: FlashAttention, Algorithm 1.
    """
    Nq, Nk = Q.shape[0], K.shape[0]
    for cols in tiles(Nk, Bc):
        first = cols.start == 0
        k, v = K[cols], V[cols]
        for rows in tiles(Nq, Br):
            if causal and fully_masked(rows, cols, Nq, Nk):
                if first:  # these queries see no key at all
                    O[rows], LSE[rows] = 0, -np.inf
                continue
            q = Q[rows]
            # 1. The scores of this tile, s (Br, Bc): on chip only, masked if causal.
            ### BEGIN SOLUTION
            s = scale * (q @ k.T)
            if causal:
                s = mask_scores(s, rows, cols, Nq, Nk)
            ### END SOLUTION
            # 2. What this tile alone would need: its maximum m_tile, terms p, denominator l_tile.
            ### BEGIN SOLUTION
            m_tile = s.max(axis=1)
            p = shifted_exp(s, m_tile[:, None])
            l_tile = p.sum(axis=1)
            ### END SOLUTION
            # 3. What was known before it: o_old, l_old, m_old. Nothing, on the first pass: HBM
            #    holds NaN there, so do not read it.
            ### BEGIN SOLUTION
            if first:
                o_old, l_old, m_old = np.zeros_like(q), np.zeros_like(l_tile), m_tile
            else:
                o_old, l_old, m_old = O[rows], l[rows], m[rows]
            ### END SOLUTION
            # 4. Bring both to the common maximum m_new, divide by the common denominator l_new,
            #    and store O, l and m.
            ### BEGIN SOLUTION
            m_new = np.maximum(m_old, m_tile)
            keep = shifted_exp(m_old, m_new) * l_old
            join = shifted_exp(m_tile, m_new)
            l_new = keep + join * l_tile
            O[rows] = divide_rows(keep[:, None] * o_old + join[:, None] * (p @ v), l_new)
            l[rows], m[rows] = l_new, m_new
            ### END SOLUTION
            # 5. Was this the last tile that these queries see? Then their LSE is final: store it.
            ### BEGIN SOLUTION
            after = slice(cols.stop, cols.stop + 1)
            if cols.stop == Nk or (causal and fully_masked(rows, after, Nq, Nk)):
                LSE[rows] = log_sum_exp(m_new, l_new)
            ### END SOLUTION
