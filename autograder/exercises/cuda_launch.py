"""The judge's side of a CUDA exercise: take the kernel, compile it, launch it in the simulator.

The simulator is used even where there is a GPU: it knows the arrays apart, it stops what never
ends, and it catches races, accesses out of bounds and uninitialised reads with line and thread.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

from autograder.candidate import Candidate, NotWritten, StudentFault
from autograder.cuda_kernel import CudaKernel
from autograder.launch_text import LaunchTextError

if TYPE_CHECKING:  # compiler and simulator load when the first kernel is judged
    from cupy_kernels.simulator import Fault
    from cupy_kernels.traffic import Traffic

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r"^\s*(?:#|%:)\s*include\b(?P<what>.*)$", re.MULTILINE)
HEADER = re.compile(r'\s*(?:"[\w.-]+"|<[\w-]+(?:/[\w-]+)*(?:\.\w+)?>)\s*')
ENDLESS = ("step limit", "time limit", "deadlock")


class Stopped(StudentFault):
    """A launch that did not come to its end: what happened, in brief too, and the usual cause."""

    def __init__(self, message: str, brief: str = "", cause: str = "", *, fatal: bool = False):
        super().__init__(message, fatal=fatal)
        self.brief = brief or message
        self.cause = cause


def handed_in(candidate: Candidate, name: str, parameters: Sequence[str]) -> CudaKernel:
    """The candidate's kernel, compiled once. Raises NotWritten, or StudentFault saying why not."""
    from cupy_kernels import NvrtcNotFound

    try:
        kernel = CudaKernel.from_plain(candidate.call())
        if not kernel.is_written:
            raise NotWritten
        _refuse_other_kernels(kernel, name, parameters)
        _refuse_other_files(kernel.source)
        kernel.compiled("sim")
    except (TypeError, ValueError, NvrtcNotFound) as error:  # CompileError is a ValueError
        raise StudentFault(_without_folders(error)) from None
    return kernel


def _refuse_other_kernels(kernel: CudaKernel, name: str, parameters: Sequence[str]) -> None:
    if kernel.name != name:
        raise StudentFault(f"the kernel is called {name}, and yours {kernel.name}")
    declared = [parameter.name for parameter in kernel.parameters]
    if declared != list(parameters):
        asked, yours = ", ".join(parameters), ", ".join(declared)
        raise StudentFault(f"{name} takes ({asked}), and yours ({yours}): keep them as given")


def _refuse_other_files(source: str) -> None:
    """Headers of CUDA and of the course only: a message could quote any other file."""
    spliced = COMMENT.sub(" ", source.replace("\\\r\n", "").replace("\\\n", ""))
    for include in INCLUDE.finditer(spliced):
        if not HEADER.fullmatch(include["what"]):
            raise StudentFault(
                f"#include{include['what'][:80]}: include the course's headers "
                '("warp_reduce.cuh") and CUDA\'s (<cuda_fp16.h>) only'
            )


def _without_folders(error: Exception) -> str:
    """The message, without the folder of this machine that the course's headers lie in."""
    from cupy_kernels.nvrtc import KERNEL_DIR

    return str(error).replace(f"{KERNEL_DIR}/", "")


def launch(kernel: CudaKernel, values: Mapping[str, Any], seconds: float) -> "Traffic":
    """Launch on `values` (outputs among them, changed in place). Raises Stopped or StudentFault.

    What the kernel prints is not shown: printf is for launches of the student's own.
    """
    from cupy_kernels import measure
    from cupy_kernels.simulator import Fault, Limits, PtxError

    try:
        with measure() as traffic, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            kernel.launch(values, device="sim", limits=Limits(seconds=seconds))
    except Fault as fault:
        brief = f"{fault.kind} at {fault.place}"
        raise Stopped(described(fault), brief, fault.cause, fatal=fault.kind in ENDLESS) from None
    except LaunchTextError as error:  # the same for every launch
        raise StudentFault(str(error), fatal=True) from None
    except (TypeError, ValueError, PtxError) as error:
        raise Stopped(str(error)) from None
    return traffic


def described(fault: "Fault") -> str:
    """What happened where, without the cause (it has a place of its own) and without PTX."""
    return str(replace(fault, cause="", instruction=""))
