"""Attention forward by any kernel of the course: `forward(q, k, v, kernel="naive_forward")`."""

import numpy as np

from cupy_kernels import device as devices
from cupy_kernels import registry
from cupy_kernels.attention import Attention


def forward(q, k, v, kernel="naive_forward", causal=False, scale=None, device=None):
    """Exact attention, softmax(scale · Q Kᵀ) V, by one of the course's kernels.

    q is (batch, heads, Nq, d); k and v are (batch, kv_heads, Nk, d), where kv_heads divides heads
    (query head h reads kv head h // group). A causal mask is aligned bottom-right; a row that sees
    no key gives O = 0 and LSE = −∞. `scale=None` means 1/√d. NumPy arrays come back as NumPy
    arrays, CuPy ones as CuPy; `device` is "gpu", "sim" or None.

    Returns (o, lse): o like q, and lse the natural log-sum-exp, float32 (batch, heads, Nq).
    Raises ValueError or TypeError for what the kernel does not support, before any launch.
    """
    chosen = registry.find(kernel, registry.FORWARD_KERNELS)
    problem = Attention.of(q, k, v, causal, scale)
    chosen.check(problem)
    where = devices.choose(kernel, chosen.arch, device)
    arrays = devices.array_module(where)
    home = "sim" if isinstance(q, np.ndarray) else "gpu"
    q, k, v = (arrays.ascontiguousarray(devices.move(array, where)) for array in (q, k, v))
    o = arrays.empty_like(q)
    lse = arrays.empty(q.shape[:3], np.float32)
    chosen.launch(q, k, v, o, lse, problem, where)
    return tuple(devices.move(result, home) for result in (o, lse))
