"""What a kernel will occupy, from the compiler alone: registers, spills, shared memory, occupancy.

No GPU is needed: NVRTC runs ptxas down to a cubin, whose ELF sections and log hold the figures.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from cupy_kernels import elf_info, occupancy, signature
from cupy_kernels.notices import NOT_MEASURED
from cupy_kernels.nvrtc import compile_cubin

PROPERTIES = re.compile(
    r"Function properties for (?P<name>\S+)\s+ptxas\s+\.?\s*(?P<stack>\d+) bytes stack frame, "
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
PTXAS_WARNING = re.compile(r"^.*(?:warning\s*:|\bC75\d\d\b).*$", re.MULTILINE)


@dataclass(frozen=True)
class Resources:
    """Resources of one compiled kernel.

    Registers and stack bytes are per thread, shared bytes per block (static only). Spill bytes are
    the code's own loads and stores, None where the compiler's log does not give them. `warnings`
    are ptxas's: some mean that an instruction was quietly serialised or ignored.
    """

    kernel: str
    arch: str
    registers: int
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    stack_bytes: int
    static_shared_bytes: int
    constant_bytes: int
    max_threads: int
    warnings: tuple[str, ...] = ()

    @property
    def spills(self) -> bool | None:
        """Whether registers overflow into local memory; None if not measured."""
        return None if self.spill_store_bytes is None else self.spill_store_bytes > 0

    def occupancy(
        self, threads: int, dynamic_shared_bytes: int = 0, gpu: str = "H200"
    ) -> occupancy.Occupancy:
        """Blocks and warps that one SM of the named GPU holds at once."""
        shared = self.static_shared_bytes + dynamic_shared_bytes
        return occupancy.occupancy(threads, self.registers, shared, gpu)

    def to_dict(self) -> dict:
        """Plain data for JSON; null is "not measured"."""
        return asdict(self)

    def __repr__(self):
        rows = "\n".join(f"  {label:<24}{value}" for label, value in self._rows())
        return f"{self.kernel} on {self.arch}\n{rows}"

    def _repr_html_(self):
        cells = "".join(
            f'<tr><th style="text-align:left">{html.escape(label)}</th>'
            f'<td style="text-align:right">{html.escape(value)}</td></tr>'
            for label, value in self._rows()
        )
        title = html.escape(f"{self.kernel} on {self.arch}")
        return f"<table><caption>{title}</caption>{cells}</table>"

    def _rows(self):
        spilled = (self.spill_store_bytes, self.spill_load_bytes)
        spills = NOT_MEASURED if None in spilled else "{:,} B stores, {:,} B loads".format(*spilled)
        return [
            ("registers / thread", f"{self.registers}"),
            ("spills", spills),
            ("stack / thread", f"{self.stack_bytes:,} B"),
            ("static shared / block", f"{self.static_shared_bytes:,} B"),
            ("constant memory", f"{self.constant_bytes:,} B"),
            ("threads / block", f"at most {self.max_threads:,}"),
            *[("ptxas warns", warning.strip()) for warning in self.warnings],
        ]


def resources(
    source: str,
    name: str | None = None,
    options: Sequence[str] = (),
    arch: str = "sm_90a",
    filename: str = "kernel.cu",
) -> Resources:
    """Compile `source` and report the kernel `name` (its only kernel if None).

    A template instance is named as an expression, "scale<float>". Raises CompileError,
    NvrtcNotFound, or ValueError if the kernel is not there or the choice is open.
    """
    expressions = (name,) if name and "<" in name else ()
    found = all_resources(source, options, arch, expressions, filename)
    found = {kernel.kernel: kernel for kernel in found.values()}
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name not in found:
        what = "has several kernels" if name is None else f'has no kernel "{name}"'
        raise ValueError(f"{filename} {what}: name one of {', '.join(found) or '(none)'}")
    return found[name]


def all_resources(
    source: str,
    options: Sequence[str] = (),
    arch: str = "sm_90a",
    name_expressions: Sequence[str] = (),
    filename: str = "kernel.cu",
) -> dict[str, Resources]:
    """Resources of every kernel in `source`, by name expression, else by name in the cubin."""
    cubin = compile_cubin(
        source, options=options, name_expressions=name_expressions, arch=arch, filename=filename
    )
    spills = {
        m["name"]: (int(m["stores"]), int(m["loads"])) for m in PROPERTIES.finditer(cubin.log)
    }
    warnings = tuple(PTXAS_WARNING.findall(cubin.log))
    shown = {mangled: expression for expression, mangled in cubin.lowered_names.items()}
    return {
        shown.get(mangled, mangled): Resources(
            shown.get(mangled) or signature.base_name(mangled),
            arch,
            info.registers,
            *spills.get(mangled, (None, None)),
            info.stack_bytes,
            info.shared_bytes,
            info.constant_bytes,
            _max_threads(info),
            warnings,
        )
        for mangled, info in sorted(elf_info.kernel_infos(cubin.image).items())
    }


def _max_threads(info):
    """Largest block that launches: launch bounds, 1,024, or what 64 K registers hold."""
    warps = 65536 // (-(-info.registers * 32 // 256) * 256) if info.registers else 32
    return min(info.max_threads or 1024, 32 * warps)
