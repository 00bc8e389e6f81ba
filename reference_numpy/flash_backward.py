"""The backward pass that recomputes P on chip from Q, K and the stored LSE.

FlashAttention (2205.14135), Algorithm 4, with the LSE of FlashAttention-2 (Algorithm 2) in place
of l and m. P = e^(S − LSE) costs one more matmul than reading it back, and no N×N traffic.
"""

import numpy as np

from reference_numpy.machine import HbmArray, Machine
from reference_numpy.online_softmax import shifted_exp
from reference_numpy.tiling import fully_masked, mask_scores, tiles


def flash_backward(
    machine: Machine,
    Q: HbmArray,
    K: HbmArray,
    V: HbmArray,
    O: HbmArray,
    dO: HbmArray,
    LSE: HbmArray,
    D: HbmArray,
    dQ: HbmArray,
    dK: HbmArray,
    dV: HbmArray,
    *,
    Br: int,
    Bc: int,
    scale: float,
    causal: bool,
) -> None:
    """Gradients of attention, K and V in the outer loop, dQ accumulated in HBM.

    Args:
        machine: where the tiles are loaded, stored and metered.
        Q, O, dO, dQ: (Nq, d) in HBM; dQ is written.
        K, V, dK, dV: (Nk, d) in HBM; dK and dV are written.
        LSE: (Nq,) in HBM, from the forward pass.
        D: (Nq,) in HBM, rowsum(dO ∘ O), written first.
        Br, Bc: query rows and key rows of a tile.
        scale: factor on the scores, usually 1/√d.
        causal: as in the forward pass; fully masked tiles are not visited.

    Source: FlashAttention-2, Algorithm 2.
    """
    Nq, Nk = Q.shape[0], K.shape[0]
    # 1. D, one number a query: rowsum(dO ∘ O).
    for rows in tiles(Nq, Br):
        ### BEGIN SOLUTION
        D[rows] = (dO[rows] * O[rows]).sum(axis=1)
        ### END SOLUTION
    for cols in tiles(Nk, Bc):
        first = cols.start == 0
        k, v = K[cols], V[cols]
        dk, dv = np.zeros(k.shape, np.float32), np.zeros(v.shape, np.float32)
        for rows in tiles(Nq, Br):
            if causal and fully_masked(rows, cols, Nq, Nk):
                if first:  # these queries see no key at all
                    dQ[rows] = 0
                continue
            q, do = Q[rows], dO[rows]
            # 2. P of this tile again, p (Br, Bc), from q, k and one number a row.
            ### BEGIN SOLUTION
            s = scale * (q @ k.T)
            if causal:
                s = mask_scores(s, rows, cols, Nq, Nk)
            p = shifted_exp(s, LSE[rows][:, None])
            ### END SOLUTION
            # 3. Back through O = P V and through the softmax: add to dv, and find ds (Br, Bc).
            ### BEGIN SOLUTION
            dv += p.T @ do
            dp = do @ v.T
            ds = p * (dp - D[rows][:, None])
            ### END SOLUTION
            # 4. Back through S = scale · Q Kᵀ: add to dk on chip, and to dQ in HBM.
            ### BEGIN SOLUTION
            dk += scale * (ds.T @ q)
            dq = np.float32(0) if first else dQ[rows]
            dQ[rows] = dq + scale * (ds @ k)
            ### END SOLUTION
        dK[cols], dV[cols] = dk, dv
