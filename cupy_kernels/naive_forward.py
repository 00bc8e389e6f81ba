"""Naive attention in three kernels, S and P in HBM between them: launch shapes and scratch arrays.

The baseline of the course. It moves 2Nd + N² elements for the scores, 4N² for the softmax (three
reads, one write; the textbook's two need the whole row on chip) and N² + 2Nd for the weighted sum,
when K and V are counted once.
"""

import numpy as np

from cupy_kernels import device as devices
from cupy_kernels.attention import Attention, cdiv
from cupy_kernels.kernel_files import KernelFile

SCORES = KernelFile("naive_scores.cu", "naive_scores")
SOFTMAX = KernelFile("naive_softmax.cu", "naive_softmax")
WEIGHTED_SUM = KernelFile("naive_weighted_sum.cu", "naive_weighted_sum")

ROWS, COLUMNS = 8, 32  # of a block in the two matrix products: one warp a row
SOFTMAX_THREADS = 128


def naive_forward(q, k, v, o, lse, problem: Attention, device: str) -> None:
    """Write O into `o` and LSE into `lse`; float32, any d. Arrays as in `forward`."""
    arrays = devices.array_module(device)
    s = arrays.empty((problem.batch, problem.heads, problem.Nq, problem.Nk), np.float32)
    p = arrays.empty_like(s)
    scores(q, k, s, problem, device)
    softmax(s, p, lse, device)
    weighted_sum(p, v, o, problem, device)


def scores(q, k, s, problem: Attention, device: str) -> None:
    """S = scale · Q Kᵀ, −∞ where masked; s is (batch, heads, Nq, Nk)."""
    sizes = (problem.heads, problem.kv_heads, problem.Nq, problem.Nk, problem.d)
    grid = (cdiv(problem.Nk, COLUMNS), cdiv(problem.Nq, ROWS), problem.batch * problem.heads)
    args = (q, k, s, *sizes, np.float32(problem.scale), int(problem.causal))
    SCORES.kernel(device)(grid, (COLUMNS, ROWS), args)


def softmax(s, p, lse, device: str) -> None:
    """P = softmax(S) along the last axis, and its natural log-sum-exp."""
    rows, keys = s.size // s.shape[-1], s.shape[-1]
    SOFTMAX.kernel(device)((rows,), (SOFTMAX_THREADS,), (s, p, lse, keys))


def weighted_sum(p, v, o, problem: Attention, device: str) -> None:
    """O = P V."""
    sizes = (problem.heads, problem.kv_heads, problem.Nq, problem.Nk, problem.d)
    grid = (cdiv(problem.d, COLUMNS), cdiv(problem.Nq, ROWS), problem.batch * problem.heads)
    WEIGHTED_SUM.kernel(device)(grid, (COLUMNS, ROWS), (p, v, o, *sizes))
