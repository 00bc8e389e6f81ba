"""FlashAttention-2: queries stay on chip, K and V stream past, one division at the end.

FlashAttention-2 (2307.08691), Algorithm 1. With Q in the outer loop each tile of queries is
finished in one go: O is written once, nothing is read back, and every tile of queries can run
on its own streaming multiprocessor.
"""

import numpy as np

from reference_numpy.machine import HbmArray, Machine
from reference_numpy.online_softmax import divide_rows, log_sum_exp, shifted_exp
from reference_numpy.tiling import fully_masked, mask_scores, tiles


def flash2_forward(
    machine: Machine,
    Q: HbmArray,
    K: HbmArray,
    V: HbmArray,
    O: HbmArray,
    LSE: HbmArray,
    *,
    Br: int,
    Bc: int,
    scale: float,
    causal: bool,
) -> None:
    """Attention with Q in the outer loop.

    Args:
        machine: where the tiles are loaded, stored and metered.
        Q, O: (Nq, d) in HBM; O is the result.
        K, V: (Nk, d) in HBM.
        LSE: (Nq,) in HBM, m + ln l of each query, for the backward pass.
        Br, Bc: query rows and key rows of a tile.
        scale: factor on the scores, usually 1/√d.
        causal: hide later keys, aligned bottom-right; fully masked tiles are not visited.

    Source: FlashAttention-2, Algorithm 1.
    """
    Nq, Nk = Q.shape[0], K.shape[0]
    for rows in tiles(Nq, Br):
        q = Q[rows]
        o = np.zeros(q.shape, np.float32)  # Σ e^(s − m)·v, not yet divided
        l = np.zeros(len(q), np.float32)
        m = np.full(len(q), -np.inf, np.float32)
        # 1. Every tile of keys that these queries see, in order: update o, l and m. No division.
        ### BEGIN SOLUTION
        for cols in tiles(Nk, Bc):
            if causal and fully_masked(rows, cols, Nq, Nk):
                break
            s = scale * (q @ K[cols].T)
            if causal:
                s = mask_scores(s, rows, cols, Nq, Nk)
            m_new = np.maximum(m, s.max(axis=1))
            p = shifted_exp(s, m_new[:, None])
            rescale = shifted_exp(m, m_new)
            l = rescale * l + p.sum(axis=1)
            o = rescale[:, None] * o + p @ V[cols]
            m = m_new
        ### END SOLUTION
        # 2. Divide once, and store O and LSE once.
        ### BEGIN SOLUTION
        O[rows] = divide_rows(o, l)
        LSE[rows] = log_sum_exp(m, l)
        ### END SOLUTION
