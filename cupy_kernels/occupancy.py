"""How many blocks of a kernel an SM holds at once, and what stops the next one.

Limits per SM are from the CUDA C++ Programming Guide, "Compute Capabilities", table of technical
specifications. Registers are handed out in units of 256 a warp, shared memory in units of 128
bytes, and from compute capability 8.0 on each block costs one more kilobyte of it.
"""

from dataclasses import dataclass

WARP = 32
REGISTER_UNIT = 256
SHARED_UNIT = 128


@dataclass(frozen=True)
class Gpu:
    """One GPU's limits per SM; `shared_bytes` is what all blocks of an SM share."""

    name: str
    arch: str
    sms: int
    max_warps: int
    max_blocks: int
    shared_bytes: int
    registers: int = 65536
    block_reserve: int = 1024


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("T4", "sm_75", 40, 32, 16, 64 * 1024, block_reserve=0),
        Gpu("A100", "sm_80", 108, 64, 32, 164 * 1024),
        Gpu("A10", "sm_86", 72, 48, 16, 100 * 1024),
        Gpu("L4", "sm_89", 58, 48, 24, 100 * 1024),
        Gpu("RTX 4090", "sm_89", 128, 48, 24, 100 * 1024),
        Gpu("H100", "sm_90", 132, 64, 32, 228 * 1024),
        Gpu("H200", "sm_90", 132, 64, 32, 228 * 1024),
        Gpu("B200", "sm_100", 148, 64, 32, 228 * 1024),
    )
}


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps resident on one SM, and the resource that runs out first."""

    gpu: str
    blocks: int
    warps: int
    max_warps: int
    limited_by: str

    @property
    def fraction(self) -> float:
        """Resident warps over the most an SM can hold."""
        return self.warps / self.max_warps

    def __str__(self):
        return (
            f"{self.gpu}: {self.blocks} blocks, {self.warps} of {self.max_warps} warps an SM "
            f"({self.fraction:.0%}), limited by {self.limited_by}"
        )


def occupancy(
    threads: int, registers: int, shared_bytes: int, gpu: str | Gpu = "H200"
) -> Occupancy:
    """Occupancy of blocks of `threads` threads, `registers` a thread, `shared_bytes` a block.

    Raises ValueError for a GPU that is not in `GPUS`.
    """
    if gpu not in GPUS and not isinstance(gpu, Gpu):
        raise ValueError(f"no GPU {gpu!r} here: one of {', '.join(GPUS)}")
    gpu = GPUS.get(gpu, gpu)
    warps = _ceil(threads, WARP) // WARP
    warp_registers = _ceil(registers * WARP, REGISTER_UNIT)
    shared = _ceil(shared_bytes + gpu.block_reserve, SHARED_UNIT)
    fits = {
        "registers": gpu.registers // warp_registers // warps if registers else gpu.max_blocks,
        "shared memory": gpu.shared_bytes // shared if shared else gpu.max_blocks,
        "warps": gpu.max_warps // warps,
        "blocks": gpu.max_blocks,
    }
    limited_by = min(fits, key=fits.get)
    blocks = fits[limited_by]
    return Occupancy(gpu.name, blocks, blocks * warps, gpu.max_warps, limited_by)


def _ceil(value, unit):
    return -(-value // unit) * unit
