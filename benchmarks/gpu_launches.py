"""The child process of the crosscheck: launch kernels of the sampler on the GPU, in order.

    python -m benchmarks.gpu_launches FOLDER NAME...

Writes FOLDER/NAME.npz with the arguments after each launch, and a line to FOLDER/finished, so that
the parent knows which kernel took the process down. Under ncu only these launches are profiled.
"""

import sys
from pathlib import Path

import numpy as np

from cupy_kernels.nvrtc import compile_cubin
from tests.cupy_kernels.sampler import SAMPLER
from tests.cupy_kernels.sampler.attention import ATTENTION


def main(folder: str, names: list[str]) -> None:
    """Launch each named case once."""
    folder, cases = Path(folder), SAMPLER | ATTENTION
    for name in names:
        kernel = load(cases[name], folder)
        np.savez(folder / f"{name}.npz", **launch(cases[name], kernel))
        note(folder / "finished", name)


def load(case, folder: Path):
    """CuPy's kernel for `case`, from the same source and NVRTC as the simulator's PTX."""
    import cupy

    capability = cupy.cuda.Device().compute_capability
    arch = f"sm_{capability}" + ("a" if int(capability) >= 90 else "")
    names, filename = case.name_expressions, case.file.name
    cubin = compile_cubin(case.source, name_expressions=names, arch=arch, filename=filename)
    path = folder / f"{case.name}.cubin"
    path.write_bytes(cubin.image)
    mangled = cubin.lowered_names.get(case.kernel, case.kernel)
    return cupy.RawModule(path=str(path)).get_function(mangled)


def launch(case, kernel) -> dict:
    """Launch with fresh arguments; returns the arrays afterwards, as NumPy arrays by name."""
    import cupy
    from cupyx.profiler import profile

    arguments, _ = case.arguments()
    passed = {name: _on_device(value) for name, value in arguments.items()}
    with profile():
        kernel(case.grid, case.block, tuple(passed.values()), shared_mem=case.shared_bytes)
        cupy.cuda.Device().synchronize()
    return {
        name: value.get().view(arguments[name].dtype).reshape(arguments[name].shape)
        for name, value in passed.items()
        if isinstance(value, cupy.ndarray)
    }


def _on_device(value):
    """Arrays as bytes in GPU memory; scalars and structs (by value) as they are."""
    import cupy

    if isinstance(value, np.void):
        return np.asarray(value).reshape(1).view(f"V{value.dtype.itemsize}")
    if not isinstance(value, np.ndarray):
        return value
    return cupy.asarray(np.ascontiguousarray(value).reshape(-1).view(np.uint8))


def note(path: Path, name: str) -> None:
    """Append one line, flushed at once."""
    with path.open("a") as file:
        file.write(f"{name}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
