"""Where a kernel runs: on the GPU if there is one and it can, else in the simulator.

`COURSE_DEVICE=gpu|sim` or a kernel's `device=` forces the choice. CuPy is imported here first, and
only when a kernel is about to run: importing this package never needs it.
"""

import functools
import os
import re

import numpy as np

from cupy_kernels.notices import say_once

DEVICES = ("gpu", "sim")


@functools.cache
def gpu_capability() -> tuple[int, int] | None:
    """Compute capability of the current GPU, such as (9, 0), or None where CuPy finds none."""
    return _look_for_gpu()[0]


def no_gpu_reason() -> str:
    """Why there is no GPU to use, in a few words; "" if there is one."""
    return _look_for_gpu()[1]


def choose(kernel: str, arch: str | None = None, device: str | None = None) -> str:
    """Return "gpu" or "sim" for a kernel that asks for `arch` (None: any).

    Falling back to the simulator is said once on stderr. Raises ValueError for an unknown device
    and RuntimeError where "gpu" is demanded and cannot be had.
    """
    forced = device or os.environ.get("COURSE_DEVICE") or None
    if forced not in (None, *DEVICES):
        raise ValueError(f"device is {forced!r}, it is one of {', '.join(DEVICES)} or None")
    if forced == "sim":
        return "sim"
    obstacle = _obstacle(arch)
    if not obstacle:
        return "gpu"
    if forced == "gpu":
        raise RuntimeError(f"{kernel} cannot run on the GPU: {obstacle}")
    say_once(f"{obstacle}: kernels run in the simulator")
    return "sim"


def gpu_arch() -> str:
    """The real architecture to compile for on this GPU, its own instructions included: sm_90a."""
    major, minor = gpu_capability()
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def array_module(where: str):
    """The array library of a place: NumPy for "sim", CuPy for "gpu"."""
    if where == "sim":
        return np
    import cupy

    return cupy


def move(array, where: str):
    """The array in the memory of a place, copied only if it is not there yet."""
    is_there = isinstance(array, np.ndarray) == (where == "sim")
    if is_there:
        return array
    return array.get() if where == "sim" else array_module("gpu").asarray(array)


@functools.cache
def _look_for_gpu():
    try:
        import cupy
    except ModuleNotFoundError:
        return None, "no GPU (CuPy is not installed)"
    except ImportError as error:
        return None, f"no GPU (CuPy does not load: {error})"
    try:
        cupy.cuda.runtime.getDeviceCount()
        capability = cupy.cuda.Device().compute_capability
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return None, f"no GPU (CuPy says: {error})"
    return (int(capability[:-1]), int(capability[-1])), ""


def _obstacle(arch):
    """Why a kernel for `arch` cannot run on the GPU here; "" if it can."""
    capability = gpu_capability()
    if capability is None:
        return no_gpu_reason()
    if arch is None:
        return ""
    digits, own = re.search(r"_(\d+)([af]?)$", arch).groups()
    wanted = (int(digits[:-1]), int(digits[-1]))
    if capability == wanted or (capability > wanted and not own):
        return ""
    return f"this GPU has compute capability {capability[0]}.{capability[1]}, {arch} is asked for"
