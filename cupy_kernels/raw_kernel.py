"""RawKernel and RawModule with CuPy's calling convention, on a GPU or in the simulator.

    kernel = RawKernel(source, "scale")
    kernel((grid,), (block,), (x, y, np.int32(n)), shared_mem=0)

The same source and the same call run in both places, on NumPy or CuPy arrays; `device.py` chooses.
"""

from collections.abc import Sequence

from cupy_kernels import device as devices
from cupy_kernels import launch_checks
from cupy_kernels.gpu_kernel import GpuKernel
from cupy_kernels.kernel_source import KernelSource
from cupy_kernels.launch_checks import DEFAULT_SHARED_BYTES
from cupy_kernels.resources import Resources
from cupy_kernels.signature import Signature
from cupy_kernels.simulated_kernel import SimulatedKernel

BACKENDS = {"gpu": GpuKernel, "sim": SimulatedKernel}


class RawModule:
    """A CUDA source and the kernels in it.

    `name_expressions` name the template instances to compile, such as "scale<float>". `device` is
    "gpu", "sim" or None (chosen for each kernel); messages call the source `filename`.
    """

    def __init__(
        self,
        code: str,
        *,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        name_expressions: Sequence[str] | None = None,
        device: str | None = None,
        filename: str = "kernel.cu",
    ):
        if backend != "nvrtc":
            raise ValueError(f"backend is {backend!r}, this course compiles with 'nvrtc' only")
        names = tuple(name_expressions or ())
        self.source = KernelSource(code, tuple(options), names, filename)
        self.device = device

    def compile(self) -> None:
        """Compile now instead of at the first launch; raises CompileError."""
        _ = self.ptx

    @property
    def ptx(self) -> str:
        """The PTX that NVRTC makes from the source."""
        return self.source.ptx.text

    def get_function(self, name: str) -> "RawKernel":
        """The kernel `name`: an extern "C" kernel, or one of the name expressions."""
        return RawKernel.of(self.source, name, self.device)


class RawKernel:
    """One kernel of a CUDA source: `kernel(grid, block, args, shared_mem=0)`.

    `name` is an `extern "C"` kernel or a template instance ("scale<float>"). Arguments are arrays
    for pointers, NumPy scalars of the parameter's own type, or Python ints where they fit.
    `.limits` may hold a `simulator.Limits` (steps, seconds) for launches in the simulator.
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        *,
        device: str | None = None,
        filename: str = "kernel.cu",
    ):
        names = (name,) if "<" in name else ()
        module = RawModule(
            code, options=options, backend=backend, name_expressions=names, filename=filename
        )
        self._set_up(module.source, name, device)

    @classmethod
    def of(cls, source: KernelSource, name: str, device: str | None = None) -> "RawKernel":
        """The kernel `name` of a source that is already described."""
        kernel = cls.__new__(cls)
        kernel._set_up(source, name, device)
        return kernel

    def _set_up(self, source, name, device):
        self.source: KernelSource = source
        self.name = name
        self.limits = None
        self._device = device
        self._loaded = {}
        self._allowed_shared = None

    def __call__(self, grid, block, args, *, shared_mem: int = 0, stream=None) -> None:
        """Launch `grid` blocks of `block` threads (tuples of one to three numbers).

        `shared_mem` is dynamic shared memory, bytes a block. Arrays that the kernel writes are
        changed in place, wherever it runs. Raises CompileError, TypeError or ValueError for a
        wrong argument or an impossible launch, and simulator.Fault for a bug caught on the way.
        """
        backend = self._backend
        limits = backend.limits
        grid = launch_checks.geometry(self.name, "grid", grid, limits.grid)
        block = launch_checks.geometry(self.name, "block", block, limits.block)
        bound = launch_checks.bind_arguments(self.name, self.signature, args)
        launch_checks.check_block(self.name, block, backend.max_threads)
        allowed = self.max_dynamic_shared_size_bytes
        self._check_shared(shared_mem, allowed)
        backend.launch(grid, block, bound, shared_mem, allowed, stream, self.limits)

    @property
    def device(self) -> str:
        """Where the next launch runs: "gpu" or "sim"."""
        return devices.choose(self.name, self.source.arch, self._device)

    @property
    def signature(self) -> Signature | None:
        """The parameters as the source declares them; None if a macro hides them."""
        return self.source.signature(self.name)

    @property
    def resources(self) -> Resources:
        """Registers, spills, shared memory and occupancy, from the compiler."""
        return self._backend.resources

    @property
    def code(self) -> str:
        """The CUDA source."""
        return self.source.code

    @property
    def ptx(self) -> str:
        """The PTX that NVRTC makes from the source."""
        return self.source.ptx.text

    # ---- CuPy's attributes ------------------------------------------------------------------

    @property
    def num_regs(self) -> int:
        """Registers a thread."""
        return self.resources.registers

    @property
    def shared_size_bytes(self) -> int:
        """Static shared memory a block."""
        return self._backend.static_shared_bytes

    @property
    def local_size_bytes(self) -> int:
        """Local memory a thread: spilled registers and arrays indexed at run time."""
        return self.resources.stack_bytes

    @property
    def const_size_bytes(self) -> int:
        """Constant memory that the source declares."""
        return self.resources.constant_bytes

    @property
    def max_threads_per_block(self) -> int:
        """The largest block that can launch."""
        return self._backend.max_threads

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Dynamic shared memory that a launch may ask for; set it to go beyond 48 KB in all."""
        if self._allowed_shared is not None:
            return self._allowed_shared
        return max(0, DEFAULT_SHARED_BYTES - self.shared_size_bytes)

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self._check_shared(size, size)
        self._allowed_shared = size
        self._backend.allow_dynamic_shared(size)

    @property
    def attributes(self) -> dict[str, int]:
        """CuPy's attributes above, by name."""
        names = ("max_threads_per_block", "shared_size_bytes", "const_size_bytes")
        names += ("local_size_bytes", "num_regs", "max_dynamic_shared_size_bytes")
        return {name: getattr(self, name) for name in names}

    @property
    def _backend(self) -> GpuKernel | SimulatedKernel:
        where = self.device
        if where not in self._loaded:
            self._loaded[where] = BACKENDS[where](self.source, self.name)
        return self._loaded[where]

    def _check_shared(self, dynamic, allowed):
        backend = self._backend
        launch_checks.check_shared(
            self.name,
            static=backend.static_shared_bytes,
            dynamic=dynamic,
            allowed=allowed,
            device_limit=backend.limits.shared_bytes,
        )
