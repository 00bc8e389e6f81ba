"""The course's own .cu files as ready kernels; also what PTX of them to ship."""

import functools
import re
from dataclasses import dataclass

from cupy_kernels.nvrtc import KERNEL_DIR, Compilation
from cupy_kernels.raw_kernel import RawKernel

# Lines that mark what a lesson leaves to the student. They are no part of the kernel: without them
# its text is that of the solved lesson, so both compile once and find the same shipped PTX.
LESSON_MARKER = re.compile(r"^ *// (?:BEGIN|END) SOLUTION\n", re.MULTILINE)


@dataclass(frozen=True)
class KernelFile:
    """One kernel of a .cu file of this folder: its name, or a template instance's expression."""

    filename: str
    name: str
    options: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The CUDA source, lesson markers left out.

        Raises FileNotFoundError naming the files there are.
        """
        path = KERNEL_DIR / self.filename
        if not path.is_file():
            there = ", ".join(sorted(file.name for file in KERNEL_DIR.glob("*.cu")))
            raise FileNotFoundError(f"no kernel file {self.filename} (there are: {there})")
        return LESSON_MARKER.sub("", path.read_text())

    @functools.cache  # noqa: B019 (one entry for each kernel of the course)
    def kernel(self, device: str | None = None) -> RawKernel:
        """The kernel, ready to launch; the same object each time."""
        return RawKernel(
            self.source, self.name, self.options, device=device, filename=self.filename
        )

    @property
    def compilation(self) -> Compilation:
        """What the kernel compiles to PTX from: shipped PTX is made and found by it."""
        names = (self.name,) if "<" in self.name else ()
        arguments = (self.source, self.options, names, "compute_90a", self.filename)
        return Compilation.of("compute", *arguments)

    @property
    def ptx_name(self) -> str:
        """Name of its shipped PTX: flash_forward<64, true> is flash_forward-64-true."""
        return re.sub(r"\W+", "-", self.name).strip("-")
