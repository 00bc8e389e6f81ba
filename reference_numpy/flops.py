"""Floating-point operations of attention: the matmuls, and what is left beside them.

A multiply-add counts as two. The matmul counts are those of one head with Nq = Nk = N; a causal
kernel that skips masked tiles does about half, and the papers divide by two.

Outside matmuls one FLOP is one add, subtract, multiply, divide, maximum, exp or log of one
element; reducing n elements to one takes n − 1. Comparisons, selections and the mask are not
arithmetic and do not count.
"""

from reference_numpy.io_complexity import Problem

FORWARD_MATMULS = 2  # Q Kᵀ, P V
STANDARD_BACKWARD_MATMULS = 4  # dV, dP, dQ, dK from a stored P
FLASH_BACKWARD_MATMULS = 5  # the same, and S = Q Kᵀ once more


def matmul_flops(N: int, d: int, matmuls: int) -> int:
    """FLOPs of `matmuls` products of N×N×d: 2·N²·d each."""
    return matmuls * 2 * N * N * d


def flash1_elementwise(p: Problem) -> int:
    """FLOPs of FlashAttention-1 outside matmuls, summed over the visited tiles.

    For each score: scale, shift and exp (3); maximum and sum along a row of Bc cost Bc − 1 each.
    For each element of O: two rescalings, one addition, one division (4). For each query of a
    tile 8 more for the statistics: the common maximum (1), `keep` (3), `join` (2), l (2). Once
    for each query that sees a key, m + ln l (2).

    Exact for reference_numpy/flash1_forward.py, as flop_counter.py counts it.
    """
    return 5 * _pairs(p) + (4 * p.d + 8 - 2) * p.query_visits + 2 * p.first_visits


def flash2_elementwise(p: Problem) -> int:
    """FLOPs of FlashAttention-2 outside matmuls, summed over the visited tiles.

    For each score as in version 1. For each element of O and tile one rescaling and one addition
    (2). For each query of a tile 5 more: the new maximum (1), the rescaling factor (2), l (2).
    Once for each query that sees a key, the division of O (d) and m + ln l (2).

    Exact for reference_numpy/flash2_forward.py, as flop_counter.py counts it.
    """
    return 5 * _pairs(p) + (2 * p.d + 5 - 2) * p.query_visits + (p.d + 2) * p.first_visits


def _pairs(p: Problem) -> int:
    """Scores computed: query rows times key rows, over the visited tiles."""
    return p.visits(lambda rows, cols: (rows.stop - rows.start) * (cols.stop - cols.start))
