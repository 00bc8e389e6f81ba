"""Run one case of the sampler on the simulator."""

from cupy_kernels.nvrtc import compile_ptx
from cupy_kernels.simulator import launch, load

from .case import Case


def simulate(case: Case, arguments: dict):
    """Launch `case` on `arguments` (changed in place), every check on; returns the counts."""
    ptx = compile_ptx(case.source, name_expressions=case.name_expressions, filename=case.file.name)
    program = load(ptx.text, case.source, case.file.name)
    kernel = program.kernels[ptx.lowered_names.get(case.kernel, case.kernel)]
    return launch(
        kernel,
        case.grid,
        case.block,
        tuple(arguments.values()),
        shared_bytes=case.shared_bytes,
        names=tuple(arguments),
    )
