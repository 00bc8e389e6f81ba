"""Standard attention: three kernels, with S and P written to HBM and read back.

FlashAttention (2205.14135), Algorithm 0. Each function below is one kernel: it starts with an
empty chip and whatever it wants to pass on must go through HBM.
"""

import numpy as np

from reference_numpy.machine import HbmArray, Machine
from reference_numpy.tiling import tiles


def scores(machine: Machine, Q: HbmArray, K: HbmArray, S: HbmArray, *, Br, Bc, scale) -> None:
    """S = scale · Q Kᵀ.

    Args:
        Q, K: (Nq, d) and (Nk, d) in HBM.
        S: (Nq, Nk) in HBM, written.
        Br, Bc: query rows and key rows of a tile.
    """
    K = K[:] if machine.fits(K) else K  # on chip for good, or loaded again tile by tile
    ### BEGIN SOLUTION
    for rows in tiles(Q.shape[0], Br):
        q = Q[rows]
        for cols in tiles(K.shape[0], Bc):
            S[rows, cols] = scale * (q @ K[cols].T)
    ### END SOLUTION


def softmax_rows(machine: Machine, S: HbmArray, P: HbmArray, *, Br) -> None:
    """P = softmax of each row of S; both (Nq, Nk) in HBM. Br rows are on chip at a time."""
    ### BEGIN SOLUTION
    for rows in tiles(S.shape[0], Br):
        s = S[rows]
        p = np.exp(s - s.max(axis=1, keepdims=True))
        P[rows] = p / p.sum(axis=1, keepdims=True)
    ### END SOLUTION


def weighted_sum(machine: Machine, P: HbmArray, V: HbmArray, O: HbmArray, *, Br, Bc) -> None:
    """O = P V.

    Args:
        P, V: (Nq, Nk) and (Nk, d) in HBM.
        O: (Nq, d) in HBM, written.
    """
    V = V[:] if machine.fits(V) else V
    ### BEGIN SOLUTION
    for rows in tiles(P.shape[0], Br):
        o = np.zeros((rows.stop - rows.start, V.shape[1]), np.float32)
        for cols in tiles(V.shape[0], Bc):
            o += P[rows, cols] @ V[cols]
        O[rows] = o
    ### END SOLUTION


def three_kernels(
    machine: Machine,
    Q: HbmArray,
    K: HbmArray,
    V: HbmArray,
    S: HbmArray,
    P: HbmArray,
    O: HbmArray,
    *,
    Br: int,
    Bc: int,
    scale: float,
) -> None:
    """Attention in three kernels.

    Args:
        machine: where the tiles are loaded, stored and metered.
        Q, K, V: (Nq, d), (Nk, d), (Nk, d) in HBM.
        S, P: (Nq, Nk) in HBM, scratch.
        O: (Nq, d) in HBM, the result.
        Br, Bc: query rows and key rows of a tile.
        scale: factor on the scores, usually 1/√d.

    Moves 4Nd + 4N² elements when K and V fit on the chip (Nq = Nk = N).
    Source: FlashAttention, Algorithm 0.
    """
    scores(machine, Q, K, S, Br=Br, Bc=Bc, scale=scale)
    softmax_rows(machine, S, P, Br=Br)
    weighted_sum(machine, P, V, O, Br=Br, Bc=Bc)
