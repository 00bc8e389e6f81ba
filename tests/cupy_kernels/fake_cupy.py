"""A stand-in for CuPy that "launches" Python functions: enough to test what the real one is handed.

It shows that arguments arrive as CuPy takes them and that results come back; it computes nothing
that a GPU would.
"""

import types
from pathlib import Path

import numpy as np


class Array:
    """Device memory. Not a NumPy array, so that the difference counts."""

    def __init__(self, host):
        self.memory = np.array(host)
        self.__cuda_array_interface__ = {}

    dtype = property(lambda self: self.memory.dtype)
    shape = property(lambda self: self.memory.shape)
    strides = property(lambda self: self.memory.strides)
    size = property(lambda self: self.memory.size)
    ndim = property(lambda self: self.memory.ndim)
    flags = property(lambda self: self.memory.flags)

    def get(self):
        return self.memory.copy()

    def set(self, host):
        self.memory[...] = host


class Launched:
    """One kernel of a cubin: keeps its launches, and runs `body(*args)` for each."""

    shared_size_bytes = 0
    max_threads_per_block = 1024

    def __init__(self, body, name):
        self.body, self.name, self.calls = body, name, []
        self.max_dynamic_shared_size_bytes = 49152

    def __call__(self, grid, block, args, shared_mem=0, stream=None):
        self.calls.append((grid, block, args, shared_mem))
        self.body(*(arg.memory if isinstance(arg, Array) else arg for arg in args))


def make(body, capability="90"):
    """A module that looks like CuPy on a GPU of the given compute capability."""
    cupy = types.ModuleType("cupy")
    cupy.kernels = {}

    def raw_module(path):
        def get_function(name):
            return cupy.kernels.setdefault(name, Launched(body, name))

        assert Path(path).read_bytes()[:4] == b"\x7fELF"
        return types.SimpleNamespace(get_function=get_function)

    limits = {"MaxBlockDimX": 1024, "MaxBlockDimY": 1024, "MaxBlockDimZ": 64}
    limits |= {"MaxGridDimX": 2**31 - 1, "MaxGridDimY": 65535, "MaxGridDimZ": 65535}
    limits |= {"MaxThreadsPerBlock": 1024, "MaxSharedMemoryPerBlockOptin": 232448}
    device = types.SimpleNamespace(
        compute_capability=capability, attributes=limits, synchronize=lambda: None
    )
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError)
    cupy.cuda = types.SimpleNamespace(Device=lambda: device, runtime=runtime)
    cupy.RawModule, cupy.asarray, cupy.ascontiguousarray = raw_module, Array, lambda array: array
    cupy.empty = lambda shape, dtype: Array(np.empty(shape, dtype))
    cupy.empty_like = lambda array: Array(np.empty_like(array.memory))
    return cupy
