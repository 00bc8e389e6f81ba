"""The course's CUDA kernels, and how to compile, launch and measure them with or without a GPU."""

from cupy_kernels.backward import backward
from cupy_kernels.forward import forward
from cupy_kernels.measure import measure
from cupy_kernels.nvrtc import CompileError, NvrtcNotFound, compile_cubin, compile_ptx
from cupy_kernels.raw_kernel import RawKernel, RawModule
from cupy_kernels.registry import list_kernels
from cupy_kernels.resources import resources

__all__ = [
    "CompileError",
    "NvrtcNotFound",
    "RawKernel",
    "RawModule",
    "backward",
    "compile_cubin",
    "compile_ptx",
    "forward",
    "list_kernels",
    "measure",
    "resources",
]
