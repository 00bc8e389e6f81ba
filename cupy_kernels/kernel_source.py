"""A CUDA source with all that decides how it compiles: what both places that run it start from."""

from dataclasses import dataclass
from functools import cached_property

from cupy_kernels.nvrtc import Cubin, Ptx, compile_cubin, compile_ptx, split_arch
from cupy_kernels.resources import Resources, all_resources
from cupy_kernels.signature import Signature, base_name, signatures


@dataclass(frozen=True)
class KernelSource:
    """CUDA source text, compiler options, template instances, and what messages call the file."""

    code: str
    options: tuple[str, ...] = ()
    name_expressions: tuple[str, ...] = ()
    filename: str = "kernel.cu"

    @property
    def arch(self) -> str | None:
        """The architecture that the options ask for, such as "sm_90a"; None if they do not."""
        return split_arch(self.options)[1]

    @cached_property
    def ptx(self) -> Ptx:
        """The source compiled to PTX, for the architecture asked for or for Hopper."""
        return compile_ptx(
            self.code,
            options=self.options,
            name_expressions=self.name_expressions,
            filename=self.filename,
        )

    def cubin(self, arch: str) -> Cubin:
        """The source compiled to machine code for `arch`, whatever the options ask for."""
        return compile_cubin(self.code, **self._for(arch))

    def resources(self, name: str, arch: str) -> Resources:
        """Registers, spills and memory of one kernel compiled for `arch`."""
        return self.pick(name, all_resources(self.code, **self._for(arch)))

    def signature(self, name: str) -> Signature | None:
        """The kernel's parameters as declared; None if the source hides them behind a macro."""
        declared = self._signatures.get(base_name(name))
        return declared.instance(name) if declared else None

    def pick(self, name: str, kernels: dict):
        """`kernels[name]`; raises ValueError that lists the kernels there are."""
        if name in kernels:
            return kernels[name]
        shown = ", ".join(sorted({base_name(kernel) for kernel in kernels})) or "none"
        message = f'{self.filename} has no kernel "{name}" (it has: {shown})'
        if name in {base_name(kernel) for kernel in kernels}:
            message = (
                f'{self.filename}: the name of kernel "{name}" is mangled by C++: write '
                'extern "C" before __global__, or list it in name_expressions'
            )
        raise ValueError(message)

    @cached_property
    def _signatures(self):
        return signatures(self.code)

    def _for(self, arch):
        options = split_arch(self.options)[0]
        names, filename = self.name_expressions, self.filename
        return {"options": options, "name_expressions": names, "arch": arch, "filename": filename}
