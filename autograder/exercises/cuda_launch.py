"""The judge's side of a CUDA exercise: take the kernel, compile it, launch it in the simulator.

The simulator is used even where there is a GPU: it knows the arrays apart, it stops what never
ends, and it catches races, accesses out of bounds and uninitialised reads with line and thread.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.candidate import Candidate, NotWritten, StudentFault
from autograder.cuda_kernel import CudaKernel
from autograder.exercise import Tier
from autograder.faults import COURSE
from autograder.launch_text import LaunchTextError

if TYPE_CHECKING:  # compiler and simulator load when the first kernel is judged
    from cupy_kernels.simulator import Fault
    from cupy_kernels.traffic import Traffic

SPLICE = re.compile(r"\\[ \t]*\r?\n")
LINE_COMMENT = re.compile(r"\s*//(?!.*\*/)")
INCLUDE = re.compile(
    r'\s*#\s*include\s*(?:"[\w-]+\.cuh"|<[\w-]+(?:/[\w-]+)*(?:\.\w+)?>)\s*(?://.*)?'
)
LOCAL_ARRAY = re.compile(r"\.local\s[^;]*\[(\d+)\];")
LOCAL_BYTES = 16 << 10
COMPILE_SECONDS, COMPILE_BYTES = 30, 4 << 30
ENDLESS = ("step limit", "time limit", "deadlock")


class Stopped(StudentFault):
    """A launch that did not come to its end: what happened, in brief too, and the usual cause."""

    def __init__(self, message: str, brief: str = "", cause: str = "", *, fatal: bool = False):
        super().__init__(message, fatal=fatal)
        self.brief = brief or message
        self.cause = cause


def handed_in(candidate: Candidate, name: str, parameters: Sequence[str], tier: Tier) -> CudaKernel:
    """The candidate's kernel, compiled once. Raises NotWritten, or StudentFault saying why not."""
    from cupy_kernels import NvrtcNotFound

    try:
        kernel = CudaKernel.from_plain(candidate.call())
        if not kernel.is_written:
            raise NotWritten
        _refuse_other_kernels(kernel, name, parameters)
        _refuse_other_files(kernel.source)
        if tier is Tier.FULL:
            _compile_apart(kernel)
        _refuse_much_local_memory(kernel.compiled("sim").ptx)
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
    """Headers of CUDA and of the course only: the compiler's message could quote any other file.

    Every line that says `include` has to be such a line or a // comment: there are many ways to
    hide a directive between comments and strings, and none to hide it from this.
    """
    joined = SPLICE.sub("", source)
    for line in (*joined.splitlines(), *source.splitlines()):
        if "include" in line and not (LINE_COMMENT.match(line) or INCLUDE.fullmatch(line)):
            raise StudentFault(
                f'{line.strip()[:80]}: include the course\'s headers ("warp_reduce.cuh") and '
                "CUDA's (<cuda_fp16.h>) only, and leave the word out of /* */ comments"
            )


def _compile_apart(kernel: CudaKernel) -> None:
    """Compile in a process of its own: a few macros can keep a compiler busy for ever.

    What comes out of it is in the cache of compilations afterwards.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{kernel.name}.cu"
        source.write_text(kernel.source, "utf-8")
        command = [sys.executable, "-m", "cupy_kernels", "ptx", str(source)]
        try:
            ended = subprocess.run(
                command,
                cwd=COURSE,
                capture_output=True,
                timeout=COMPILE_SECONDS,
                preexec_fn=_limit_memory,
            )
        except subprocess.TimeoutExpired:
            raise StudentFault(f"the compiler was not done after {COMPILE_SECONDS} s") from None
    if ended.returncode < 0:
        raise StudentFault("the compiler broke down over this source")


def _limit_memory() -> None:
    import resource  # there is none on Windows, where no submission is graded

    resource.setrlimit(resource.RLIMIT_AS, (COMPILE_BYTES, COMPILE_BYTES))


def _refuse_much_local_memory(ptx: str) -> None:
    """Arrays in local memory: the simulator holds them for every thread."""
    size = sum(map(int, LOCAL_ARRAY.findall(ptx)))
    if size > LOCAL_BYTES:
        raise StudentFault(
            f"each thread has {size:,} bytes of local arrays; at most {LOCAL_BYTES:,} are allowed"
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
