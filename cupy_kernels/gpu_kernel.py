"""A kernel on the GPU: a cubin launched through CuPy. The one module that calls CuPy's launch."""

import functools
import hashlib

import numpy as np

from cupy_kernels import compile_cache, device, measure
from cupy_kernels.kernel_source import KernelSource
from cupy_kernels.launch_checks import Bound, DeviceLimits
from cupy_kernels.resources import Resources


class GpuKernel:
    """One kernel of a source, compiled for the GPU here and loaded."""

    def __init__(self, source: KernelSource, name: str):
        self.source = source
        self.name = name
        self.resources: Resources = source.resources(name, device.gpu_arch())
        cubin = source.cubin(device.gpu_arch())
        self._kernel = _load(cubin.image, cubin.lowered_names.get(name, name))

    @property
    def limits(self) -> DeviceLimits:
        """Launch limits of this GPU."""
        return _limits()

    @property
    def static_shared_bytes(self) -> int:
        """Static shared memory a block."""
        return self._kernel.shared_size_bytes

    @property
    def max_threads(self) -> int:
        """The largest block that this GPU can launch."""
        return self._kernel.max_threads_per_block

    def allow_dynamic_shared(self, size: int) -> None:
        """Opt into `size` bytes of dynamic shared memory a block."""
        self._kernel.max_dynamic_shared_size_bytes = size

    def launch(self, grid, block, bound: Bound, shared_mem, allowed_shared, stream, limits) -> None:
        """Run on the GPU; NumPy arrays are copied there, and those not const come back in place.

        An array passed twice is one array there too. `limits` bounds the simulator only.
        """
        measure.record_gpu_launch(
            self.source, self.name, grid, block, bound, shared_mem, allowed_shared
        )
        copies = {}
        passed = tuple(_on_device(parameter, arg, copies) for parameter, arg in bound)
        self._kernel(grid, block, passed, shared_mem=shared_mem, stream=stream)
        written = {_span(a) for p, a in bound if p.is_output and isinstance(a, np.ndarray)}
        for array, copy in (copies[span] for span in written):
            _bytes_of(array)[...] = copy.get()


@functools.cache
def _load(image, mangled_name):
    """CuPy's own kernel object; it loads files only, so the cubin goes to the cache folder."""
    import cupy

    path = compile_cache.cache_dir() / "cubin" / f"{hashlib.sha256(image).hexdigest()}.cubin"
    if not path.exists():
        compile_cache.write_whole(path, image)
    return cupy.RawModule(path=str(path)).get_function(mangled_name)


@functools.cache
def _limits():
    import cupy

    named = cupy.cuda.Device().attributes
    return DeviceLimits(
        threads_per_block=named["MaxThreadsPerBlock"],
        block=tuple(named[f"MaxBlockDim{axis}"] for axis in "XYZ"),
        grid=tuple(named[f"MaxGridDim{axis}"] for axis in "XYZ"),
        shared_bytes=named["MaxSharedMemoryPerBlockOptin"],
    )


def _on_device(parameter, arg, copies):
    """The argument as CuPy takes it; `copies` gathers {span: (NumPy array, its GPU copy)}."""
    import cupy

    if parameter.is_pointer and isinstance(arg, np.ndarray):
        if _span(arg) not in copies:
            copies[_span(arg)] = arg, cupy.asarray(_bytes_of(arg))
        return copies[_span(arg)][1]
    if not parameter.is_pointer and hasattr(arg, "dtype") and arg.dtype.kind not in "biufc":
        # A struct, tensor map, bf16 or fp8 by value: CuPy passes one opaque element as its bytes.
        return np.asarray(arg).reshape(1).view(f"V{arg.dtype.itemsize}")
    return arg


def _span(array):
    return array.__array_interface__["data"][0], array.nbytes


def _bytes_of(array):
    """The array's memory as flat bytes: CuPy need not know bfloat16 to carry it."""
    return array.reshape(-1).view(np.uint8)
