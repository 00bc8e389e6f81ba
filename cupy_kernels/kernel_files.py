"""The course's own .cu files as ready kernels, and the list of those whose PTX is shipped."""

import functools

from cupy_kernels.nvrtc import KERNEL_DIR, Compilation
from cupy_kernels.raw_kernel import RawKernel


@functools.cache
def kernel(
    filename: str, name: str, options: tuple[str, ...] = (), device: str | None = None
) -> RawKernel:
    """The kernel `name` (or template instance) of a .cu file of this folder."""
    return RawKernel(source(filename), name, options, device=device, filename=filename)


def source(filename: str) -> str:
    """CUDA source of a file of this folder. Raises FileNotFoundError naming those there are."""
    path = KERNEL_DIR / filename
    if not path.is_file():
        there = ", ".join(sorted(file.name for file in KERNEL_DIR.glob("*.cu")))
        raise FileNotFoundError(f"no kernel file {filename} (there are: {there})")
    return path.read_text()


def compilation(filename: str, name: str, options: tuple[str, ...] = ()) -> Compilation:
    """The compilation that `kernel(...)` asks for, as shipped PTX is made and found by."""
    names = (name,) if "<" in name else ()
    return Compilation.of("compute", source(filename), options, names, "compute_90a", filename)
