"""Naive backward over a stored P: five products and sums, each its own launch.

    dV = Pᵀ dO    dP = dO Vᵀ    dS = scale · P ∘ (dP − rowsum(P ∘ dP))    dQ = dS K    dK = dSᵀ Q

Source: FlashAttention (arXiv 2205.14135), Algorithm 3. dP and dQ are the products of the forward
pass again, S = Q Kᵀ and O = P V, so they run its kernels: what these call q, k, s is dO, V, dP.
"""

from dataclasses import replace

import numpy as np

from cupy_kernels import device as devices
from cupy_kernels.attention import Attention, cdiv
from cupy_kernels.kernel_files import KernelFile
from cupy_kernels.naive_forward import COLUMNS, ROWS, scores, softmax, weighted_sum

SOFTMAX_BACKWARD = KernelFile("naive_softmax_backward.cu", "naive_softmax_backward")
TRANSPOSED_SUM = KernelFile("naive_transposed_sum.cu", "naive_transposed_sum")

SOFTMAX_THREADS = 128


def naive_backward(q, k, v, o, lse, do, dq, dk, dv, problem: Attention, device: str) -> None:
    """Write the gradients into `dq`, `dk`, `dv`. Arrays as in `backward`; o and lse are not used.

    P is what a naive forward pass would have stored: it is made first, by two launches of that
    pass. `gradients` has the backward pass alone.
    """
    p = stored_probabilities(q, k, problem, device)
    gradients(q, k, v, p, do, dq, dk, dv, problem, device)


def stored_probabilities(q, k, problem: Attention, device: str):
    """P, (batch, heads, Nq, Nk), as the naive forward pass leaves it in HBM."""
    arrays = devices.array_module(device)
    s = arrays.empty((problem.batch, problem.heads, problem.Nq, problem.Nk), np.float32)
    p, lse = arrays.empty_like(s), arrays.empty(s.shape[:3], np.float32)
    scores(q, k, s, problem, device)
    softmax(s, p, lse, device)
    return p


def gradients(q, k, v, p, do, dq, dk, dv, problem: Attention, device: str) -> None:
    """The five launches: dQ, dK, dV from the stored P."""
    arrays = devices.array_module(device)
    dp, ds = arrays.empty_like(p), arrays.empty_like(p)
    transposed_sum(p, do, dv, problem, device)
    scores(do, v, dp, replace(problem, scale=1.0, causal=False), device)
    softmax_backward(p, dp, ds, problem, device)
    weighted_sum(ds, k, dq, problem, device)
    transposed_sum(ds, q, dk, problem, device)


def softmax_backward(p, dp, ds, problem: Attention, device: str) -> None:
    """dS = scale · P ∘ (dP − rowsum(P ∘ dP)); all (batch, heads, Nq, Nk)."""
    rows = p.size // problem.Nk
    args = (p, dp, ds, problem.Nk, np.float32(problem.scale))
    SOFTMAX_BACKWARD.kernel(device)((rows,), (SOFTMAX_THREADS,), args)


def transposed_sum(a, x, y, problem: Attention, device: str) -> None:
    """Y = Aᵀ X, summed over the query heads that share a kv head; y is like k."""
    sizes = (problem.heads, problem.kv_heads, problem.Nq, problem.Nk, problem.d)
    grid = (cdiv(problem.d, COLUMNS), cdiv(problem.Nk, ROWS), problem.batch * problem.kv_heads)
    TRANSPOSED_SUM.kernel(device)(grid, (COLUMNS, ROWS), (a, x, y, *sizes))
