"""Random PTX programs on the GPU, against the scalar interpreter that the tests use.

    python -m benchmarks.gpu_random_programs COUNT

Prints one JSON line: {"programs": COUNT, "wrong": {seed: [differences]}, "miscompiled": {...}}.
A program that differs is assembled again without ptxas' optimiser. If it then agrees, the optimiser
is at fault, not the meaning of an instruction: it is listed as miscompiled, not as wrong.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.cupy_kernels.random_ptx import generator
from tests.cupy_kernels.random_ptx.compare import buffers, differences, interpreted


def main(count: int) -> None:
    """Run `count` programs in both places."""
    found = {"programs": count, "wrong": {}, "miscompiled": {}}
    for seed in range(count):
        want = interpreted(seed)
        optimised = _differences(load, seed, want)
        if optimised:
            plain = _differences(load_unoptimised, seed, want)
            found["wrong" if plain else "miscompiled"][seed] = plain or optimised
    print(json.dumps(found))


def _differences(loader, seed, want):
    try:
        return differences(on_gpu(loader, seed), want)
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:500]}"]


def on_gpu(loader, seed: int):
    """Results and cells after a run of the very PTX text on the GPU."""
    import cupy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random_program.ptx"
        path.write_text(generator.program(seed))
        kernel = loader(path).get_function("random_program")
    words, results, cells = (cupy.asarray(a.view(np.uint8)) for a in buffers(seed))
    kernel((generator.GRID,), (generator.BLOCK,), (words, results, cells))
    return results.get().view(generator.RESULT), cells.get().view(np.uint32)


def load(ptx: Path):
    """CuPy's module of a PTX file, assembled and optimised by the driver."""
    import cupy

    module = cupy.RawModule(path=str(ptx))
    module.compile()
    return module


def load_unoptimised(ptx: Path):
    """CuPy's module of a PTX file, assembled by the toolkit's ptxas with its optimiser off."""
    import cupy

    toolkit = Path(cupy.cuda.get_cuda_path() or "/usr/local/cuda")
    ptxas = shutil.which("ptxas") or str(toolkit / "bin" / "ptxas")
    cubin = ptx.with_suffix(".cubin")
    arch = f"sm_{cupy.cuda.Device().compute_capability}a"
    command = [ptxas, "-O0", f"-arch={arch}", str(ptx), "-o", str(cubin)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if answer.returncode:
        raise RuntimeError(answer.stderr.strip())
    return load(cubin)


if __name__ == "__main__":
    main(int(sys.argv[1]))
