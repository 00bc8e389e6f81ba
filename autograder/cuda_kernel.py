"""What a CUDA exercise hands in: a source and its launch, both as text."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from autograder.launch_text import LaunchTextError, evaluate

if TYPE_CHECKING:  # in a student's process nothing is compiled: it does without these
    from cupy_kernels import RawKernel
    from cupy_kernels.signature import Parameter

SOURCE_LIMIT = 100_000  # characters
# A place that is still to be written: the mark with nothing of one's own on the line after it.
UNWRITTEN = re.compile(r"^[ \t]*// YOUR CODE HERE[ \t]*\n[ \t]*(?:\}|//|$)", re.MULTILINE)


@dataclass(frozen=True)
class CudaKernel:
    """A CUDA source with one kernel, and how many threads are to run it.

        cuda_add = CudaKernel(source, grid="cdiv(n, 256)", block="256")

    Attributes:
        source: CUDA C++ text.
        grid: how many blocks, as arithmetic on the sizes of the problem: one to three numbers.
        block: how many threads in each.
        shared: dynamic shared memory, bytes a block.
    """

    source: str
    grid: str
    block: str
    shared: str = "0"

    @classmethod
    def from_plain(cls, value: Any) -> "CudaKernel":
        """The kernel in the dict that `values.plain` makes of one.

        Raises TypeError or ValueError, in one line, for anything else.
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(value, dict) or list(value) != names:
            kind = "dict" if isinstance(value, dict) else type(value).__name__
            raise TypeError(f"this is a {kind}: hand in CudaKernel(source, grid=..., block=...)")
        for name, text in value.items():
            if not isinstance(text, str):
                raise TypeError(f'{name} is {text!r}: write it as text, {name}="..."')
        if len(value["source"]) > SOURCE_LIMIT:
            raise ValueError(f"the source is longer than {SOURCE_LIMIT:,} characters")
        return cls(**value)

    def as_dict(self) -> dict[str, str]:
        """The kernel as plain data."""
        return asdict(self)

    @property
    def is_written(self) -> bool:
        """False while a `// YOUR CODE HERE` still stands alone."""
        return not UNWRITTEN.search(self.source)

    @cached_property
    def name(self) -> str:
        """The kernel's name in the source. Raises ValueError unless there is exactly one."""
        from cupy_kernels.signature import signatures

        found = list(signatures(self.source))
        if len(found) != 1:
            there = f"{len(found)} kernels ({', '.join(found)})" if found else "no kernel"
            raise ValueError(f'the source holds {there}: one `extern "C" __global__ void` is asked')
        return found[0]

    @property
    def parameters(self) -> "tuple[Parameter, ...]":
        """The kernel's parameters as the source declares them."""
        from cupy_kernels.signature import signatures

        return signatures(self.source)[self.name].parameters

    def compiled(self, device: str | None = None) -> "RawKernel":
        """The kernel, ready to launch on "gpu", "sim", or where there is room (None).

        Raises CompileError, or NvrtcNotFound where there is no compiler.
        """
        from cupy_kernels import RawKernel

        kernel = RawKernel(self.source, self.name, device=device, filename=f"{self.name}.cu")
        _ = kernel.ptx
        return kernel

    def launch(
        self, values: Mapping[str, Any], *, device: str | None = None, limits: Any = None
    ) -> None:
        """Run the kernel on `values`, by name: its arguments, and other sizes the launch mentions.

        Arrays it writes are changed in place. Floats become float32. Raises LaunchTextError for a
        launch that is no arithmetic, and all that a `RawKernel` raises.
        """
        kernel = self.compiled(device)
        kernel.limits = limits
        sizes = {name: value for name, value in values.items() if isinstance(value, int)}
        grid, block = (evaluate(what, getattr(self, what), sizes) for what in ("grid", "block"))
        shared = evaluate("shared", self.shared, sizes)
        if len(shared) != 1:
            raise LaunchTextError(f"shared: {self.shared!r} is one number of bytes")
        kernel(grid, block, self._arguments(values), shared_mem=shared[0])

    def _arguments(self, values: Mapping[str, Any]) -> list[Any]:
        import numpy as np

        missing = [p.name for p in self.parameters if p.name not in values]
        if missing:
            there = ", ".join(values)
            raise TypeError(f"{self.name} has a parameter {missing[0]}; there are {there}")
        given = (values[parameter.name] for parameter in self.parameters)
        return [np.float32(value) if isinstance(value, float) else value for value in given]
