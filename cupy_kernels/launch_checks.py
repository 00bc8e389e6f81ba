"""What a launch must satisfy, checked before anything runs: one clear line for each mistake.

The driver answers most of these with a bare CUDA_ERROR_INVALID_VALUE, and CuPy passes some of them
through silently (a Python float to a `float` parameter arrives as half a double). The checks are
the same on the simulator and on a GPU.
"""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupy_kernels.signature import Parameter, Signature

DEFAULT_SHARED_BYTES = 48 * 1024


@dataclass(frozen=True)
class DeviceLimits:
    """Launch limits of a device; the defaults are Hopper's, which the simulator models."""

    threads_per_block: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    shared_bytes: int = 227 * 1024


HOPPER = DeviceLimits()

# Parameters with their checked arguments, in order.
Bound = list[tuple[Parameter, object]]


def geometry(kernel: str, what: str, value, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    """Fill a grid or block up to three positive dimensions. Raises ValueError naming the axis."""
    sizes = (value,) if isinstance(value, numbers.Integral) else tuple(value)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{kernel}: {what} has {len(sizes)} dimensions, CUDA has one to three")
    for axis, size, limit in zip("xyz", sizes, limits, strict=False):
        where = f"{kernel}: {what}.{axis} is {size!r}"
        if not isinstance(size, numbers.Integral):
            raise TypeError(f"{where}, not a whole number: round up with -(-n // tile)")
        if size < 1:
            raise ValueError(f"{where}: every dimension must be at least 1")
        if size > limit:
            raise ValueError(f"{where}: the limit is {limit:,}")
    return (*map(int, sizes), *[1] * (3 - len(sizes)))


def check_block(kernel: str, block: tuple[int, int, int], max_threads: int) -> None:
    """Refuse a block with more threads than the device or `__launch_bounds__` allows."""
    threads = block[0] * block[1] * block[2]
    if threads > max_threads:
        reason = "" if max_threads == 1024 else " (__launch_bounds__ or its registers set it)"
        raise ValueError(
            f"{kernel}: block {block} has {threads:,} threads, at most {max_threads:,} fit{reason}"
        )


def check_shared(kernel: str, static: int, dynamic: int, allowed: int, device_limit: int) -> None:
    """Refuse more shared memory than the kernel opted into, or than an SM has.

    `static` and `dynamic` are bytes a block; `allowed` is max_dynamic_shared_size_bytes.
    """
    if dynamic < 0:
        raise ValueError(f"{kernel}: shared_mem is {dynamic}, a number of bytes is wanted")
    total = static + dynamic
    if total > device_limit:
        raise ValueError(
            f"{kernel}: {total:,} bytes of shared memory a block ({static:,} static + {dynamic:,} "
            f"dynamic), an SM has {device_limit:,}"
        )
    if dynamic > allowed:
        raise ValueError(
            f"{kernel}: shared_mem={dynamic:,} bytes, allowed are {allowed:,} ({static:,} static; "
            f"48 KB in all without opting in): set kernel.max_dynamic_shared_size_bytes = {dynamic}"
        )


def bind_arguments(kernel: str, signature: Signature | None, args: Sequence) -> Bound:
    """Pair each parameter with its argument, scalars in the parameter's own width.

    Raises TypeError or ValueError in one line that names the parameter. Without a signature the
    arguments are taken as they come: arrays for pointers, all of them outputs.
    """
    if signature is None:
        unknown = (Parameter(f"argument {i}", "", is_array(arg)) for i, arg in enumerate(args, 1))
        return list(zip(unknown, args, strict=True))
    parameters = signature.parameters
    if len(args) != len(parameters):
        names = ", ".join(p.name for p in parameters)
        raise TypeError(f"{kernel} takes {len(parameters)} arguments ({names}), got {len(args)}")
    return [
        (parameter, _bound(f"{kernel}: argument {index} ({parameter})", parameter, arg))
        for index, (parameter, arg) in enumerate(zip(parameters, args, strict=True), 1)
    ]


def is_array(value) -> bool:
    """True for a NumPy or CuPy array (scalars of either are none)."""
    return hasattr(value, "dtype") and hasattr(value, "strides") and not np.isscalar(value)


def _bound(where, parameter: Parameter, value):
    if parameter.is_pointer:
        _check_pointer(where, parameter, value)
        return value
    if not parameter.dtypes or parameter.type[-1] in "234":
        return value  # a struct by value: the launch knows its size
    return _scalar(where, parameter, value)


def _check_pointer(where, parameter, array):
    if array is None:
        return
    if not is_array(array):
        raise TypeError(f"{where} is of type {type(array).__name__}: a pointer needs an array")
    if parameter.dtypes and array.dtype not in parameter.dtypes:
        wanted = np.dtype(parameter.dtypes[0]).name
        raise TypeError(f"{where} has dtype {array.dtype}, the pointer reads {wanted}")
    if not array.flags.c_contiguous:
        raise ValueError(
            f"{where} is not C-contiguous (shape {array.shape}, strides {array.strides}): "
            "a pointer sees plain memory, pass np.ascontiguousarray(...)"
        )
    if not parameter.is_const and isinstance(array, np.ndarray) and not array.flags.writeable:
        raise ValueError(f"{where} is read-only, and the kernel may write through it")


def _scalar(where, parameter, value):
    if is_array(value):
        if value.size != 1:
            raise TypeError(f"{where} is an array of shape {value.shape}, it takes a number")
        value = value.reshape(()).item() if value.dtype.kind in "iub" else value.reshape(())[()]
    dtype = _scalar_dtype(parameter)
    if dtype.kind in "iub":
        return _integer(where, dtype, value)
    if isinstance(value, np.generic) and value.dtype == dtype:
        return value
    if isinstance(value, float) and dtype == np.float64:
        return np.float64(value)
    given = value.dtype if isinstance(value, np.generic) else f"Python {type(value).__name__}"
    raise TypeError(f"{where} is a {given}, the parameter is {dtype.name}: pass {_example(dtype)}")


def _scalar_dtype(parameter):
    unsigned = parameter.type.startswith(("u", "size_t"))
    kinds = [np.dtype(kind) for kind in parameter.dtypes]
    if parameter.type == "bool":
        return np.dtype(np.bool_)
    return next((kind for kind in kinds if kind.kind == "u"), kinds[0]) if unsigned else kinds[0]


def _integer(where, dtype, value):
    if not isinstance(value, (numbers.Integral, np.bool_)):
        raise TypeError(f"{where} is {value!r}, it takes a whole number")
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not low <= int(value) <= high:
        raise ValueError(f"{where} is {int(value)}, outside {dtype.name}'s {low} to {high}")
    return dtype.type(int(value))


def _example(dtype):
    return f"np.{dtype.name}(...)" if hasattr(np, dtype.name) else f"ml_dtypes.{dtype.name}(...)"
