"""Three first kernels: an elementwise add, and a row softmax in one kernel and in three.

The arithmetic of the two softmaxes is the same. What differs is what crosses to HBM and back
between kernels, and on a memory-bound problem that is what takes the time.
"""

import numpy as np

from reference_numpy.machine import HbmArray, Machine
from reference_numpy.tiling import tiles


def elementwise_add(machine: Machine, X: HbmArray, Y: HbmArray, Z: HbmArray, *, B: int) -> None:
    """Z = X + Y; all (N, n) in HBM, B rows on chip at a time."""
    for rows in tiles(X.shape[0], B):
        # X[rows] loads a tile, Z[rows] = ... stores one.
        ### BEGIN SOLUTION
        Z[rows] = X[rows] + Y[rows]
        ### END SOLUTION


def softmax_one_kernel(machine: Machine, X: HbmArray, Y: HbmArray, *, B: int) -> None:
    """Y = softmax of each row of X; both (N, n) in HBM, B rows on chip at a time."""
    for rows in tiles(X.shape[0], B):
        # Load the tile, compute on it, store it.
        ### BEGIN SOLUTION
        x = X[rows]
        e = np.exp(x - x.max(axis=1, keepdims=True))
        Y[rows] = e / e.sum(axis=1, keepdims=True)
        ### END SOLUTION


def softmax_three_kernels(
    machine: Machine, X: HbmArray, M: HbmArray, L: HbmArray, Y: HbmArray, *, B: int
) -> None:
    """The same in three kernels that pass their results on through HBM.

    Args:
        X, Y: (N, n) in HBM.
        M, L: (N,) in HBM, the maximum and the denominator of each row.
        B: rows on chip at a time.
    """
    for rows in tiles(X.shape[0], B):  # kernel 1: the maximum of each row
        ### BEGIN SOLUTION
        M[rows] = X[rows].max(axis=1)
        ### END SOLUTION
    for rows in tiles(X.shape[0], B):  # kernel 2: the denominator of each row
        ### BEGIN SOLUTION
        L[rows] = np.exp(X[rows] - M[rows][:, None]).sum(axis=1)
        ### END SOLUTION
    for rows in tiles(X.shape[0], B):  # kernel 3: the result
        ### BEGIN SOLUTION
        Y[rows] = np.exp(X[rows] - M[rows][:, None]) / L[rows][:, None]
        ### END SOLUTION


def predicted_bytes(N: int, n: int) -> dict[str, int]:
    """Bytes that the three kernels above move for fp32 arrays of shape (N, n).

    Returns:
        {"elementwise_add": ..., "softmax_one_kernel": ..., "softmax_three_kernels": ...}
    """
    # Elements that each kernel reads and writes, all arrays together.
    ### BEGIN SOLUTION
    add = 3 * N * n  # read X and Y, write Z
    one = 2 * N * n  # read X, write Y
    # Read X three times, M twice and L once; write M, L and Y.
    three = 3 * N * n + 3 * N + 2 * N + N * n
    ### END SOLUTION
    return {
        "elementwise_add": 4 * add,
        "softmax_one_kernel": 4 * one,
        "softmax_three_kernels": 4 * three,
    }
