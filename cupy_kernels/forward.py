"""Attention forward by any kernel of the course: `forward(q, k, v, kernel="naive_forward")`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cupy_kernels import device as devices
from cupy_kernels.attention import Attention
from cupy_kernels.kernel_files import KernelFile
from cupy_kernels.naive_forward import SCORES, SOFTMAX, WEIGHTED_SUM, naive_forward


@dataclass(frozen=True)
class ForwardKernel:
    """What a forward kernel is and takes.

    `files` are the kernels it launches. `head_dims=None` takes any d; `arch=None` runs on any GPU.
    `launch(q, k, v, o, lse, problem, device)` writes O and LSE into the arrays given.
    """

    name: str
    summary: str
    files: tuple[KernelFile, ...]
    dtypes: tuple[str, ...]
    head_dims: tuple[int, ...] | None
    launch: Callable
    arch: str | None = None

    def check(self, problem: Attention) -> None:
        """Raise TypeError or ValueError if this kernel has no code for the problem."""
        if problem.dtype.name not in self.dtypes:
            raise TypeError(f"{self.name} takes {' or '.join(self.dtypes)}, not {problem.dtype}")
        if self.head_dims is not None and problem.d not in self.head_dims:
            dims = ", ".join(map(str, self.head_dims))
            raise ValueError(f"{self.name} takes head size d = {dims}, not {problem.d}")


FORWARD_KERNELS = {
    kernel.name: kernel
    for kernel in (
        ForwardKernel(
            name="naive_forward",
            summary="three kernels, S and P in HBM between them",
            files=(SCORES, SOFTMAX, WEIGHTED_SUM),
            dtypes=("float32",),
            head_dims=None,
            launch=naive_forward,
        ),
    )
}


def list_kernels() -> list[str]:
    """Names of the kernels that `forward` knows."""
    return list(FORWARD_KERNELS)


def forward(q, k, v, kernel="naive_forward", causal=False, scale=None, device=None):
    """Exact attention, softmax(scale · Q Kᵀ) V, by one of the course's kernels.

    q is (batch, heads, Nq, d); k and v are (batch, kv_heads, Nk, d), where kv_heads divides heads
    (query head h reads kv head h // group). A causal mask is aligned bottom-right; a row that sees
    no key gives O = 0 and LSE = −∞. `scale=None` means 1/√d. NumPy arrays come back as NumPy
    arrays, CuPy ones as CuPy; `device` is "gpu", "sim" or None.

    Returns (o, lse): o like q, and lse the natural log-sum-exp, float32 (batch, heads, Nq).
    Raises ValueError or TypeError for what the kernel does not support, before any launch.
    """
    if kernel not in FORWARD_KERNELS:
        raise ValueError(f"no kernel {kernel!r}: one of {', '.join(FORWARD_KERNELS)}")
    chosen = FORWARD_KERNELS[kernel]
    problem = Attention.of(q, k, v, causal, scale)
    chosen.check(problem)
    where = devices.choose(kernel, chosen.arch, device)
    arrays = devices.library(where)
    home = "sim" if isinstance(q, np.ndarray) else "gpu"
    q, k, v = (arrays.ascontiguousarray(devices.move(array, where)) for array in (q, k, v))
    o = arrays.empty_like(q)
    lse = arrays.empty(q.shape[:3], np.float32)
    chosen.launch(q, k, v, o, lse, problem, where)
    return tuple(devices.move(result, home) for result in (o, lse))
