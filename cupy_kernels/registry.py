"""Every attention kernel of the course by name: what it takes, and how it is launched."""

from collections.abc import Callable
from dataclasses import dataclass

from cupy_kernels import flash1, flash2, flash2_steps
from cupy_kernels.attention import Attention
from cupy_kernels.kernel_files import KernelFile
from cupy_kernels.naive_backward import SOFTMAX_BACKWARD, TRANSPOSED_SUM, naive_backward
from cupy_kernels.naive_forward import SCORES, SOFTMAX, WEIGHTED_SUM, naive_forward


@dataclass(frozen=True)
class AttentionKernel:
    """What a forward or backward kernel is and takes.

    `files` are kernels it launches; those that come in many instances are listed for d = 64, and
    for fp16 where they take several dtypes. `head_dims=None` takes any d; `arch=None` runs on any
    GPU. A forward kernel has `launch(q, k, v, o, lse, problem, device)` and writes O and LSE into
    the arrays given, a backward one `launch(q, k, v, o, lse, do, dq, dk, dv, problem, device)` and
    writes gradients.
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
        AttentionKernel(
            name="naive_forward",
            summary="three kernels, S and P in HBM between them",
            files=(SCORES, SOFTMAX, WEIGHTED_SUM),
            dtypes=("float32",),
            head_dims=None,
            launch=naive_forward,
        ),
        AttentionKernel(
            name="flash1_forward",
            summary="FlashAttention-1: K, V stay on chip, O, l, m in HBM between their tiles",
            files=(flash1.forward_file(64),),
            dtypes=("float32",),
            head_dims=flash1.HEAD_DIMS,
            launch=flash1.flash1_forward,
        ),
        *(
            AttentionKernel(
                name=step.kernel,
                summary=step.summary,
                files=(step.file("float16", 64, False),),
                dtypes=flash2.DTYPES,
                head_dims=flash2_steps.HEAD_DIMS,
                launch=step.launch,
                arch="sm_80",
            )
            for step in flash2_steps.STEPS
        ),
        AttentionKernel(
            name="flash2_forward",
            summary="FlashAttention-2 on tensor cores",
            files=tuple(flash2.forward_file("float16", 64, causal) for causal in (False, True)),
            dtypes=flash2.DTYPES,
            head_dims=flash2.HEAD_DIMS,
            launch=flash2.flash2_forward,
            arch="sm_80",
        ),
    )
}

BACKWARD_KERNELS = {
    kernel.name: kernel
    for kernel in (
        AttentionKernel(
            name="naive_backward",
            summary="five launches over a stored P, which two more make first",
            files=(SCORES, SOFTMAX, TRANSPOSED_SUM, SOFTMAX_BACKWARD, WEIGHTED_SUM),
            dtypes=("float32",),
            head_dims=None,
            launch=naive_backward,
        ),
        AttentionKernel(
            name="flash1_backward",
            summary="FlashAttention-1: P again from Q, K and LSE, dQ in HBM between tiles of K, V",
            files=(flash1.ROW_DOTS, flash1.backward_file(64)),
            dtypes=("float32",),
            head_dims=flash1.HEAD_DIMS,
            launch=flash1.flash1_backward,
        ),
        AttentionKernel(
            name="flash2_backward",
            summary="FlashAttention-2 on tensor cores, dQ added up by fp32 atomics",
            files=flash2.backward_files("float16", 64, False),
            dtypes=flash2.DTYPES,
            head_dims=flash2.HEAD_DIMS,
            launch=flash2.flash2_backward,
            arch="sm_80",
        ),
    )
}


def list_kernels() -> list[str]:
    """Names of the kernels that `forward` and `backward` know."""
    return [*FORWARD_KERNELS, *BACKWARD_KERNELS]


def find(kernel: str, kernels: dict[str, AttentionKernel]) -> AttentionKernel:
    """The kernel of that name; raises ValueError naming the ones there are."""
    if kernel not in kernels:
        raise ValueError(f"no kernel {kernel!r}: one of {', '.join(kernels)}")
    return kernels[kernel]
