"""What this machine has, what will be skipped for want of the rest, and how to get it.

Versions are read from package metadata: nothing heavy is imported to find out that it is there.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from dataclasses import dataclass
from html import escape
from importlib.metadata import PackageNotFoundError, version

NOTEBOOKS = 'pip install -e ".[notebooks]"'
CUPY_WHEELS = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
NVRTC_WHEELS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
SMI = ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]


@dataclass(frozen=True)
class Part:
    """One thing the course can use: what was found, and what follows if it is missing."""

    name: str
    found: str
    consequence: str = ""

    def __str__(self) -> str:
        found = self.found or "not found"
        return f"{self.name:<11}{found}{f' · {self.consequence}' if self.consequence else ''}"


@dataclass(frozen=True)
class Examination:
    """The doctor's report: a line for each part."""

    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        return "\n".join(map(str, self.parts))

    def _repr_html_(self) -> str:
        cell = "padding:.1em .7em;text-align:left"
        rows = "".join(
            f"<tr><th scope='row' style='{cell}'>{escape(part.name)}</th>"
            f"<td style='{cell}'>{escape(part.found or 'not found')}</td>"
            f"<td style='{cell}'>{escape(part.consequence)}</td></tr>"
            for part in self.parts
        )
        return f"<div role='status'><table>{rows}</table></div>"


def doctor() -> Examination:
    """Look the machine over; for the first cell of a notebook and for the command line."""
    return Examination(tuple(_parts()))


def _parts() -> Iterator[Part]:
    yield Part("python", platform.python_version(), _python_too_old())
    yield _package("numpy", "numpy", "nothing runs without it: pip install -e .")
    yield _package("jupyterlab", "jupyterlab", f"no lessons in the browser: {NOTEBOOKS}")
    yield _package("anywidget", "anywidget", f"widgets show their first frame only: {NOTEBOOKS}")
    gpu = gpus()
    yield Part("NVRTC", nvrtc(), "" if nvrtc() else _without_nvrtc())
    yield _cupy(gpu)
    yield _package("torch", "torch", 'comparisons are skipped: pip install -e ".[compare]"')
    yield Part("GPU", gpu, "" if gpu else "times and hardware counters are skipped")
    yield Part("kernels", *_where_kernels_run(gpu))
    yield Part("grade", *_isolation())


def _python_too_old() -> str:
    return "" if sys.version_info >= (3, 11) else "the course needs Python 3.11 or newer"


def _package(name: str, distribution: str, consequence: str) -> Part:
    found = installed(distribution)
    return Part(name, found, "" if found else consequence)


def installed(*distributions: str) -> str:
    """Version of the first of these packages that is installed, or ""."""
    for name in distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def nvrtc() -> str:
    """Version of NVRTC's package, or where else it was found, or ""."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    toolkit = f"in {home}" if home and os.path.isdir(home) else find_library("nvrtc")
    return installed(*NVRTC_WHEELS) or toolkit or ""


def _without_nvrtc() -> str:
    if sys.platform == "darwin":
        return "macOS has none: lessons 06 and up use recorded kernels or a remote Linux machine"
    return "the simulator (lessons 06 and up) is skipped: pip install nvidia-cuda-nvrtc"


def _cupy(gpu: str) -> Part:
    found = installed(*CUPY_WHEELS)
    if found:
        return Part("cupy", found)
    remedy = 'to use the GPU: pip install -e ".[gpu]"' if gpu else "not needed without a GPU"
    return Part("cupy", "", remedy)


def gpus() -> str:
    """Name, compute capability and driver of each NVIDIA GPU, or "" if there is none."""
    program = shutil.which(SMI[0])
    if program is None:
        return ""
    try:
        answer = subprocess.run(
            [program, *SMI[1:]], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return "; ".join(line.strip() for line in answer.stdout.splitlines() if line.strip())


def _where_kernels_run(gpu: str) -> tuple[str, str]:
    forced = os.environ.get("COURSE_DEVICE")
    if forced in ("gpu", "sim"):
        place = "on the GPU" if forced == "gpu" else "in the simulator"
        return place, "COURSE_DEVICE says so"
    if gpu and installed(*CUPY_WHEELS):
        return "on the GPU", ""
    return ("in the simulator", "") if nvrtc() else ("", "lessons 00 to 05 need none")


def _isolation() -> tuple[str, str]:
    if sys.platform == "win32":
        return "", "grading submissions needs Linux, macOS or WSL; check works here"
    from autograder.isolation.wall import NO_WALL, NOTICE, best_wall

    limits = "a time limit" if sys.platform == "darwin" else "time and memory limits"
    if best_wall() is NO_WALL:
        return f"in a process with {limits}", NOTICE
    return f"behind a wall ({best_wall().name}), with {limits}", ""
