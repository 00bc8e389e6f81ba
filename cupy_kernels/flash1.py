"""FlashAttention-1 in fp32 on CUDA cores: tile shapes and launches, forward and backward.

Source: FlashAttention (arXiv 2205.14135), Algorithms 1 and 4. Kernels: `flash1_forward.cu`,
`flash1_row_dots.cu`, `flash1_backward.cu`. In the closed forms of `reference_numpy` one head of
them is the problem with Bc = 32 and the Br that `forward_rows` or `backward_rows` gives.
"""

import numpy as np

from cupy_kernels import device as devices
from cupy_kernels.attention import Attention, cdiv
from cupy_kernels.kernel_files import KernelFile

HEAD_DIMS = (32, 64, 96, 128)
THREADS = 128
Bc = 32  # keys of a tile: a lane takes one
ROW_DOTS = KernelFile("flash1_row_dots.cu", "flash1_row_dots")
DOT_ROWS = 32  # rows a block of it


def forward_rows(d: int) -> int:
    """Br of the forward kernel: as many queries as fit beside K and V into 48 KB."""
    return 32 if d <= 96 else 16


def backward_rows(d: int) -> int:
    """Br of the backward kernel, which keeps twice as many tiles on chip."""
    return 32 if d <= 64 else 16 if d <= 96 else 8


def forward_file(d: int) -> KernelFile:
    """The forward kernel for one head size."""
    return KernelFile("flash1_forward.cu", "flash1_forward", _options(d))


def backward_file(d: int) -> KernelFile:
    """The main backward kernel for one head size."""
    return KernelFile("flash1_backward.cu", "flash1_backward", _options(d))


def flash1_forward(q, k, v, o, lse, problem: Attention, device: str) -> None:
    """Write O into `o` and LSE into `lse`. Arrays as in `forward`."""
    arrays = devices.array_module(device)
    l, m = arrays.empty_like(lse), arrays.empty_like(lse)
    args = (q, k, v, o, l, m, lse, *_sizes(problem))
    blocks = problem.batch * problem.heads
    forward_file(problem.d).kernel(device)((blocks,), (THREADS,), args)


def flash1_backward(q, k, v, o, lse, do, dq, dk, dv, problem: Attention, device: str) -> None:
    """Write the gradients into `dq`, `dk`, `dv`. Arrays as in `backward`."""
    D = devices.array_module(device).empty_like(lse)
    ROW_DOTS.kernel(device)((cdiv(D.size, DOT_ROWS),), (THREADS,), (o, do, D, D.size, problem.d))
    args = (q, k, v, do, lse, D, dq, dk, dv, *_sizes(problem))
    blocks = problem.batch * problem.kv_heads
    backward_file(problem.d).kernel(device)((blocks,), (THREADS,), args)


def _sizes(problem):
    """The scalars that end the parameters of both kernels."""
    numbers = (problem.heads, problem.kv_heads, problem.Nq, problem.Nk)
    return (*numbers, np.float32(problem.scale), int(problem.causal))


def _options(d):
    """None for d = 64: the text of the lesson as it stands, so its shipped PTX is found too."""
    return () if d == 64 else (f"-DHEAD_DIM={d}",)
