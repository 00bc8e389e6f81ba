"""A kernel in the simulator: NumPy arrays in host memory, the PTX run by `simulator/`.

The simulator is imported when a kernel first runs there: it takes as long as all the rest.
"""

import functools
import sys

import numpy as np

from cupy_kernels import device, launch_checks, measure
from cupy_kernels.kernel_source import KernelSource
from cupy_kernels.launch_checks import HOPPER, Bound
from cupy_kernels.notices import say_once
from cupy_kernels.resources import Resources


class SimulatedKernel:
    """One kernel of a source, loaded into the simulator, which models a Hopper GPU's limits."""

    limits = HOPPER

    def __init__(self, source: KernelSource, name: str):
        self.source = source
        self.name = name
        ptx = source.ptx
        program = _program(ptx.text, source.code, source.filename)
        mangled = {expression: program.kernels[m] for expression, m in ptx.lowered_names.items()}
        self._kernel = source.pick(name, {**program.kernels, **mangled})

    @property
    def resources(self) -> Resources:
        """Registers and spills of the machine code that a Hopper GPU would run."""
        return self.source.resources(self.name, self.source.arch or "sm_90a")

    @property
    def static_shared_bytes(self) -> int:
        """Static shared memory a block."""
        return self._kernel.static_shared_bytes

    @property
    def max_threads(self) -> int:
        """The largest block: `__launch_bounds__`, or what the device allows."""
        return self._kernel.max_threads or self.limits.threads_per_block

    def allow_dynamic_shared(self, size: int) -> None:
        """Nothing to prepare: each launch tells the simulator what is allowed."""

    def launch(self, grid, block, bound: Bound, shared_mem, allowed_shared, stream, limits) -> None:
        """Run to the end; arrays are changed in place, CuPy arrays by way of host memory."""
        from cupy_kernels import simulator

        copies = {}
        host = [_on_host(parameter, arg, copies) for parameter, arg in bound]
        counts = simulator.launch(
            self._kernel,
            grid,
            block,
            host,
            shared_bytes=shared_mem,
            max_dynamic_shared_bytes=allowed_shared,
            names=[parameter.name for parameter, _ in bound],
            **({"limits": limits} if limits else {}),
        )
        for (parameter, given), copy in zip(bound, host, strict=True):
            if copy is not given and parameter.is_output:
                given.set(copy)
        sys.stdout.write(counts.printed)
        for warning in counts.warnings:
            say_once(f"{self.name}: {warning}")
        measure.record_simulated_launch(self.source, self.name, bound, counts)


@functools.lru_cache(maxsize=64)
def _program(ptx, code, filename):
    """Parsing and translating PTX costs more than a small launch: keep the recent programs."""
    from cupy_kernels import simulator

    return simulator.load(ptx, source=code, filename=filename)


def _on_host(parameter, arg, copies):
    """The argument as the simulator takes it; a CuPy array passed twice is one array there too."""
    if parameter.is_pointer and launch_checks.is_array(arg):
        if id(arg) not in copies:
            copies[id(arg)] = device.move(arg, "sim")
        return copies[id(arg)]
    is_struct = hasattr(arg, "dtype") and arg.dtype.kind not in "biufc"
    return np.asarray(arg).tobytes() if is_struct else arg
