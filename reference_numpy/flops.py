"""Floating-point operations of attention: the matmuls, and what is left beside them.

A multiply-add counts as two. Sizes are those of one head with Nq = Nk = N; a causal kernel that
skips masked tiles does about half, and the papers divide by two.
"""

from reference_numpy.io_complexity import Problem

FORWARD_MATMULS = 2  # Q Kᵀ, P V
STANDARD_BACKWARD_MATMULS = 4  # dV, dP, dQ, dK from a stored P
FLASH_BACKWARD_MATMULS = 5  # the same, and S = Q Kᵀ once more


def matmul_flops(N: int, d: int, matmuls: int) -> int:
    """FLOPs of `matmuls` products of N×N×d: 2·N²·d each."""
    return matmuls * 2 * N * N * d


def flash1_elementwise(p: Problem) -> int:
    """FLOPs of FlashAttention-1 outside matmuls, without a mask, summed over the visited tiles.

    For each score: scale, maximum, shift, exp, sum (5). For each element of O: two rescalings,
    one addition and one division (4). For each query: 11 for the statistics. Counted as
    reference_numpy/flash1_forward.py performs them.
    """
    pairs = p.visits(lambda r, c: (r.stop - r.start) * (c.stop - c.start))
    return 5 * pairs + (4 * p.d + 11) * p.query_visits


def flash2_elementwise(p: Problem) -> int:
    """FLOPs of FlashAttention-2 outside matmuls, without a mask.

    For each score the same 5. For each element of O one rescaling and one addition a tile (2)
    and one division at the end. Counted as reference_numpy/flash2_forward.py performs them.
    """
    pairs = p.visits(lambda r, c: (r.stop - r.start) * (c.stop - c.start))
    return 5 * pairs + (2 * p.d + 5) * p.query_visits + (p.d + 2) * p.Nq
