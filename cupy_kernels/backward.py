"""Attention backward by any kernel of the course: `backward(q, k, v, o, lse, do)`."""

import numpy as np

from cupy_kernels import device as devices
from cupy_kernels import registry
from cupy_kernels.attention import Attention


def backward(q, k, v, o, lse, do, kernel="flash2_backward", causal=False, scale=None, device=None):
    """Gradients of sum(O ∘ dO) by one of the course's kernels.

    q, k, v, causal, scale and device as in `forward`, o and lse as it returned them, do like o.
    Returns (dq, dk, dv), like q, k and v; a row that sees no key has gradient 0.
    Raises ValueError or TypeError for what the kernel does not support, before any launch.
    """
    chosen = registry.find(kernel, registry.BACKWARD_KERNELS)
    problem = Attention.of(q, k, v, causal, scale)
    chosen.check(problem)
    _check_like("o", o, q.shape, q.dtype)
    _check_like("do", do, q.shape, q.dtype)
    _check_like("lse", lse, q.shape[:3], np.dtype(np.float32))
    where = devices.choose(kernel, chosen.arch, device)
    arrays = devices.array_module(where)
    home = "sim" if isinstance(q, np.ndarray) else "gpu"
    given = [
        arrays.ascontiguousarray(devices.move(array, where)) for array in (q, k, v, o, lse, do)
    ]
    gradients = [arrays.empty_like(array) for array in given[:3]]
    chosen.launch(*given, *gradients, problem, where)
    return tuple(devices.move(gradient, home) for gradient in gradients)


def _check_like(name, array, shape, dtype):
    found = getattr(array, "shape", type(array).__name__)
    if found != shape:
        raise ValueError(f"{name} is {found}, q asks for {shape}")
    if array.dtype != dtype:
        raise TypeError(f"{name} is {array.dtype}, not {dtype}")
