"""The ladder to `flash2_forward`: five kernels, each with one idea more than the one before."""

from dataclasses import dataclass

from cupy_kernels import flash2
from cupy_kernels.attention import Attention, cdiv
from cupy_kernels.kernel_files import KernelFile

HEAD_DIMS = (64, 128)
ROWS = KEYS = 64
THREADS = 128


@dataclass(frozen=True)
class Step:
    """One rung: its name after "flash2_forward_", stages of K, V, unused numbers behind a row."""

    name: str
    summary: str
    stages: int = 1
    padding: int = 0

    @property
    def kernel(self) -> str:
        """Name of the kernel, of its file and in the registry."""
        return f"flash2_forward_{self.name}"

    def file(self, dtype: str, d: int, causal: bool) -> KernelFile:
        """The kernel for one dtype and head size."""
        arguments = f"{flash2.CUDA_TYPES[dtype]}, {d}, {str(causal).lower()}"
        return KernelFile(f"{self.kernel}.cu", f"{self.kernel}<{arguments}>")

    def shared_bytes(self, d: int) -> int:
        """Q once, K and V in each stage."""
        return flash2.BYTES * (d + self.padding) * (ROWS + 2 * self.stages * KEYS)

    def launch(self, q, k, v, o, lse, problem: Attention, device: str) -> None:
        """Write O into `o` and LSE into `lse`. Arrays as in `forward`."""
        flash2.check(problem)
        kernel = self.file(problem.dtype.name, problem.d, problem.causal).kernel(device)
        keys_and_values = 2 * flash2.BYTES * problem.Nk * problem.d
        grid = flash2.grid(problem, cdiv(problem.Nq, ROWS), problem.heads, keys_and_values)
        args = (q, k, v, o, lse, *flash2.sizes(problem))
        flash2.launch(kernel, grid, THREADS, args, self.shared_bytes(problem.d))


STEPS = (
    Step("1_shared", "FlashAttention-2 step 1: tensor cores on plain shared tiles"),
    Step("2_padded", "FlashAttention-2 step 2: rows padded against bank conflicts", padding=8),
    Step("3_swizzled", "FlashAttention-2 step 3: chunks swizzled instead"),
    Step("4_double_buffered", "FlashAttention-2 step 4: cp.async into two stages", stages=2),
    Step("5_ldmatrix", "FlashAttention-2 step 5: ldmatrix.x4 instead of single loads", stages=2),
)
