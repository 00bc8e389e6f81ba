"""The standard backward pass: five kernels over the P that the forward pass stored.

FlashAttention (2205.14135), Algorithm 3. With Nq = Nk = N and whatever is re-read kept on chip
it moves 7N² + 8Nd elements, the forward pass of three_kernels.py another 4N² + 4Nd.
"""

from reference_numpy.machine import HbmArray, Machine
from reference_numpy.tiling import tiles


def transposed_product(machine: Machine, A: HbmArray, X: HbmArray, Y: HbmArray, *, Br, Bc, scale):
    """Y = scale · Aᵀ X, with A (Nq, Nk), X (Nq, d) and Y (Nk, d) in HBM."""
    X = X[:] if machine.fits(X) else X
    for cols in tiles(A.shape[1], Bc):
        y = sum(A[rows, cols].T @ X[rows] for rows in tiles(A.shape[0], Br))
        Y[cols] = scale * y


def product(machine: Machine, A: HbmArray, X: HbmArray, Y: HbmArray, *, Br, Bc, scale):
    """Y = scale · A X, with A (Nq, Nk), X (Nk, d) and Y (Nq, d) in HBM."""
    X = X[:] if machine.fits(X) else X
    for rows in tiles(A.shape[0], Br):
        y = sum(A[rows, cols] @ X[cols] for cols in tiles(A.shape[1], Bc))
        Y[rows] = scale * y


def outer_product(machine: Machine, X: HbmArray, Y: HbmArray, A: HbmArray, *, Br, Bc):
    """A = X Yᵀ, with X (Nq, d), Y (Nk, d) and A (Nq, Nk) in HBM."""
    Y = Y[:] if machine.fits(Y) else Y
    for rows in tiles(X.shape[0], Br):
        x = X[rows]
        for cols in tiles(A.shape[1], Bc):
            A[rows, cols] = x @ Y[cols].T


def softmax_backward(machine: Machine, P: HbmArray, dP: HbmArray, dS: HbmArray, *, Br):
    """dS = P ∘ (dP − rowsum(P ∘ dP)); all (Nq, Nk) in HBM, Br rows on chip at a time."""
    for rows in tiles(P.shape[0], Br):
        p, dp = P[rows], dP[rows]
        dS[rows] = p * (dp - (p * dp).sum(axis=1, keepdims=True))


def standard_backward(
    machine: Machine,
    Q: HbmArray,
    K: HbmArray,
    V: HbmArray,
    P: HbmArray,
    dO: HbmArray,
    dP: HbmArray,
    dS: HbmArray,
    dQ: HbmArray,
    dK: HbmArray,
    dV: HbmArray,
    *,
    Br: int,
    Bc: int,
    scale: float,
) -> None:
    """Gradients of attention from the stored P.

    Args:
        Q, dO, dQ: (Nq, d) in HBM. K, V, dK, dV: (Nk, d) in HBM.
        P: (Nq, Nk) in HBM, as three_kernels left it. dP, dS: (Nq, Nk), scratch.
        Br, Bc: query rows and key rows of a tile.
        scale: factor on the scores, usually 1/√d.

    Source: FlashAttention, Algorithm 3.
    """
    transposed_product(machine, P, dO, dV, Br=Br, Bc=Bc, scale=1.0)
    outer_product(machine, dO, V, dP, Br=Br, Bc=Bc)
    softmax_backward(machine, P, dP, dS, Br=Br)
    product(machine, dS, K, dQ, Br=Br, Bc=Bc, scale=scale)
    transposed_product(machine, dS, Q, dK, Br=Br, Bc=Bc, scale=scale)
