"""Random PTX programs on the GPU, against the scalar interpreter that the tests use.

    python -m benchmarks.gpu_random_programs COUNT

Prints one JSON line: {"programs": COUNT, "wrong": {seed: [differences]}}.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.cupy_kernels.random_ptx import generator
from tests.cupy_kernels.random_ptx.compare import buffers, differences, interpreted


def main(count: int) -> None:
    """Run `count` programs in both places."""
    wrong = {seed: lines for seed in range(count) if (lines := _differences(seed))}
    print(json.dumps({"programs": count, "wrong": wrong}))


def _differences(seed):
    try:
        return differences(on_gpu(seed), interpreted(seed))
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:500]}"]


def on_gpu(seed: int):
    """Results and cells after a run of the very PTX text on the GPU."""
    import cupy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random_program.ptx"
        path.write_text(generator.program(seed))
        kernel = cupy.RawModule(path=str(path)).get_function("random_program")
    words, results, cells = (cupy.asarray(a.view(np.uint8)) for a in buffers(seed))
    kernel((generator.GRID,), (generator.BLOCK,), (words, results, cells))
    return results.get().view(generator.RESULT), cells.get().view(np.uint32)


if __name__ == "__main__":
    main(int(sys.argv[1]))
