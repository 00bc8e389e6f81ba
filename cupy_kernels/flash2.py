"""FlashAttention-2 on tensor cores: tile shapes, shared memory and launches, forward and backward.

Source: FlashAttention-2 (arXiv 2307.08691), Algorithms 1 and 2. Kernels: `flash2_forward.cu`,
`flash2_backward.cu`, `flash2_backward_rows.cu`; fp16 and bf16, sums in fp32.
"""

from dataclasses import dataclass

import numpy as np

from cupy_kernels import device as devices
from cupy_kernels.attention import Attention, cdiv
from cupy_kernels.kernel_files import KernelFile

DTYPES = ("float16", "bfloat16")
HEAD_DIMS = (32, 64, 96, 128, 256)
CUDA_TYPES = {"float16": "__half", "bfloat16": "__nv_bfloat16"}
BYTES = 2  # of an element of Q, K, V, O and their gradients
SECTION_BYTES = 32 * 1024 * 1024  # about half of a big GPU's L2


@dataclass(frozen=True)
class ForwardTile:
    """Br rows of Q a block, Bc keys a step; blocks an SM should hold; Q in registers or not."""

    Br: int
    Bc: int
    warps: int
    blocks: int
    q_in_registers: bool

    def shared_bytes(self, d: int) -> int:
        """Q once, K and V in two stages."""
        return BYTES * d * (self.Br + 4 * self.Bc)


@dataclass(frozen=True)
class BackwardTile:
    """Br rows of Q a step, 16·M keys a warp; blocks an SM should hold; D of d columns a block."""

    Br: int
    M: int
    warps: int
    blocks: int
    D: int

    @property
    def Bc(self) -> int:
        """Keys a block."""
        return 16 * self.M * self.warps

    def shared_bytes(self, d: int) -> int:
        """K and V, two stages of Q and dO, dSᵀ, two stages of LSE and D (fp32)."""
        return BYTES * d * (2 * self.Bc + 4 * self.Br) + BYTES * self.Bc * self.Br + 16 * self.Br


FORWARD_TILES = {
    32: ForwardTile(Br=128, Bc=64, warps=4, blocks=2, q_in_registers=True),
    64: ForwardTile(Br=128, Bc=128, warps=4, blocks=2, q_in_registers=False),
    96: ForwardTile(Br=128, Bc=64, warps=4, blocks=2, q_in_registers=False),
    128: ForwardTile(Br=128, Bc=48, warps=4, blocks=2, q_in_registers=False),
    256: ForwardTile(Br=64, Bc=32, warps=4, blocks=1, q_in_registers=False),
}
BACKWARD_TILES = {
    32: BackwardTile(Br=64, M=1, warps=4, blocks=2, D=32),
    64: BackwardTile(Br=32, M=2, warps=4, blocks=2, D=64),
    96: BackwardTile(Br=64, M=1, warps=4, blocks=2, D=96),
    128: BackwardTile(Br=64, M=1, warps=8, blocks=1, D=128),
    256: BackwardTile(Br=32, M=1, warps=4, blocks=1, D=128),
}


def forward_file(dtype: str, d: int, causal: bool, tile: ForwardTile | None = None) -> KernelFile:
    """The forward kernel for one dtype and head size."""
    tile = tile or FORWARD_TILES[d]
    shape = (d, tile.Br, tile.Bc, tile.warps, tile.blocks)
    return _instance("flash2_forward", dtype, *shape, tile.q_in_registers, causal)


def backward_files(dtype: str, d: int, causal: bool, tile: BackwardTile | None = None):
    """The three backward kernels for one dtype and head size: prepare, main, finish."""
    tile = tile or BACKWARD_TILES[d]
    shape = (d, tile.D, tile.Br)
    rows = "flash2_backward_rows.cu"
    return (
        _instance("flash2_backward_prepare", dtype, d, tile.Br, filename=rows),
        _instance("flash2_backward", dtype, *shape, tile.M, tile.warps, tile.blocks, causal),
        _instance("flash2_backward_finish", dtype, *shape, tile.warps, filename=rows),
    )


def flash2_forward(q, k, v, o, lse, problem: Attention, device: str, tile=None) -> None:
    """Write O into `o` and LSE into `lse`. Arrays as in `forward`."""
    check(problem)
    tile = tile or FORWARD_TILES[problem.d]
    kernel = forward_file(problem.dtype.name, problem.d, problem.causal, tile).kernel(device)
    keys_and_values = 2 * BYTES * problem.Nk * problem.d
    blocks = grid(problem, cdiv(problem.Nq, tile.Br), problem.heads, keys_and_values)
    args = (q, k, v, o, lse, *sizes(problem))
    launch(kernel, blocks, 32 * tile.warps, args, tile.shared_bytes(problem.d))


def flash2_backward(
    q, k, v, o, lse, do, dq, dk, dv, problem: Attention, device: str, tile=None
) -> None:
    """Write the gradients into `dq`, `dk`, `dv`. Arrays as in `backward`.

    dQ is added up in fp32 by atomics, in an order that changes from run to run: its last bits may.
    """
    check(problem)
    tile = tile or BACKWARD_TILES[problem.d]
    files = backward_files(problem.dtype.name, problem.d, problem.causal, tile)
    prepare, main, finish = (file.kernel(device) for file in files)
    heads, row_tiles = problem.batch * problem.heads, cdiv(problem.Nq, tile.Br)
    slices, rows, threads = problem.d // tile.D, row_tiles * tile.Br, 32 * tile.warps

    arrays = devices.array_module(device)
    row_values = arrays.empty((heads, 2 * rows), np.float32)
    dq_sums = arrays.empty((heads, rows, problem.d), np.float32)
    prepared = (o, do, lse, row_values, dq_sums, problem.Nq, rows)
    prepare((cdiv(rows, 4), heads), (128,), prepared)

    args = (q, k, v, do, row_values, dq_sums, dk, dv, *sizes(problem))
    group = problem.heads // problem.kv_heads
    q_do_and_sums = (2 * BYTES + 4) * group * problem.Nq * problem.d
    x, y, sections = grid(problem, cdiv(problem.Nk, tile.Bc), problem.kv_heads, q_do_and_sums)
    launch(main, (x, y, sections * slices), threads, args, tile.shared_bytes(problem.d))

    finished = (dq_sums, dq, problem.Nq, np.float32(problem.scale))
    finish((row_tiles, heads, slices), (threads,), finished)


def check(problem: Attention) -> None:
    """Raise ValueError for what the kernels leave out: other scales, rows without a 32-bit number.

    The scale is folded into the exponent of the softmax: it must not turn the maximum round.
    """
    if not problem.scale > 0:
        raise ValueError(f"scale is {problem.scale:g}: the flash2 kernels need a scale above 0")
    rows = problem.batch * problem.heads * max(problem.Nq, problem.Nk)
    if rows >= 2**31:
        raise ValueError(f"batch · heads · N is {rows:,}: the flash2 kernels count up to 2³¹ rows")


def grid(problem: Attention, tiles: int, heads: int, bytes_a_head: int) -> tuple[int, int, int]:
    """Blocks, which start in the order x, y, z; `heads` are those of one batch.

    Full: head by head, so that the blocks at work share K and V in L2. Causal: the longest tiles of
    a section of heads first, the short ones last to fill the gaps; a section's data fit in L2.
    """
    all_heads = problem.batch * heads
    if not problem.causal:
        return tiles, all_heads, 1
    most = max(1, SECTION_BYTES // bytes_a_head)
    section = max(size for size in range(1, min(most, all_heads) + 1) if all_heads % size == 0)
    return section, tiles, all_heads // section


def sizes(problem: Attention) -> tuple:
    """The scalars that end the parameters of every flash2 kernel."""
    group = problem.heads // problem.kv_heads
    return group, problem.Nq, problem.Nk, np.float32(problem.scale)


def launch(kernel, grid, threads: int, args, shared_bytes: int) -> None:
    """Launch with as much dynamic shared memory as the kernel needs."""
    if kernel.max_dynamic_shared_size_bytes < shared_bytes:
        kernel.max_dynamic_shared_size_bytes = shared_bytes
    kernel(grid, (threads,), args, shared_mem=shared_bytes)


def _instance(name, dtype, *arguments, filename=None):
    """A template instance: flash2_forward<__half, 64, …, true>."""
    listed = ", ".join(str(x).lower() for x in (CUDA_TYPES[dtype], *arguments))
    return KernelFile(filename or f"{name}.cu", f"{name}<{listed}>")
