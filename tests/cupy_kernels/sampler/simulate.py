"""Run one case of the sampler on the simulator."""

import contextlib
import io
from dataclasses import dataclass

from cupy_kernels.nvrtc import compile_ptx
from cupy_kernels.simulator import launch, load

from .case import Case


@dataclass(frozen=True)
class Simulated:
    """What the simulator made of a case: the arguments, its counts, and printf's text."""

    arguments: dict
    counts: object
    printed: str


def simulate(case: Case, arguments: dict) -> Simulated:
    """Launch `case` on `arguments` (changed in place), with every check on."""
    ptx = compile_ptx(case.source, name_expressions=case.name_expressions, filename=case.file.name)
    program = load(ptx.text, case.source, case.file.name)
    kernel = program.kernels[ptx.lowered_names.get(case.kernel, case.kernel)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        counts = launch(
            kernel,
            case.grid,
            case.block,
            tuple(arguments.values()),
            shared_bytes=case.shared_bytes,
            names=tuple(arguments),
        )
    return Simulated(arguments, counts, printed.getvalue())
