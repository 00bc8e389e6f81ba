"""Loading: PTX text to a ``Program`` of ``Kernel`` objects, checked but not yet translated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .address_space import MODULE_SLOT, PARAM_SLOT, Buffer, slot_base
from .calls import FlatKernel, expand_calls
from .cfg import Cfg
from .codegen import Code
from .instructions import check_known
from .local_memory import FrameLayout
from .parser import parse
from .ptx import TYPE_BYTES, Address, Function, Instruction, Module, Symbol, Variable, Vector
from .scheduler import Program as Endings
from .shared_memory import Layout

GLOBAL_FENCES = {"gl", "gpu", "sys", "acquire", "release", "acq_rel"}


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter: source name where known, PTX type, size, alignment and offset."""

    name: str
    type: str
    size: int
    align: int
    offset: int


class Program:
    """A loaded PTX module. ``kernels`` by name; ``variables`` = module-scope memory by name."""

    def __init__(self, ptx: str, source: str, filename: str):
        self.module: Module = parse(ptx, source, filename)
        self.source, self.filename = source, filename
        self.buffers = self._module_buffers()
        self.kernels: dict[str, Kernel] = {
            name: Kernel(self, f) for name, f in self.module.functions.items() if f.is_entry
        }

    @property
    def variables(self) -> dict[str, np.ndarray]:
        """The bytes of ``__device__`` and ``__constant__`` variables; they outlive launches."""
        return {name: b.bytes for name, b in self.buffers.items()}

    def _module_buffers(self) -> dict[str, Buffer]:
        buffers = {}
        for name, slot in module_slots(self.module).items():
            v = self.module.variables[name]
            data = np.frombuffer(v.data or bytes(v.size), np.uint8).copy()
            item = TYPE_BYTES[v.type] if v.type != "b8" else 0
            buffers[name] = Buffer(name, data, slot, item)
            buffers[name].read_only = v.space == "const"
        for v in self.module.variables.values():
            for at, name in v.symbols:
                address = np.array([buffers[name].base], np.uint64).view(np.uint8)
                buffers[v.name].bytes[at : at + 8] = address
        return buffers


class Translation:
    """All that follows from the PTX of one entry alone: shared by equal programs, made lazily."""

    def __init__(self, module: Module, entry: Function):
        self.module, self.entry, self.name = module, entry, entry.name
        self.offsets = _offsets(entry.params)
        for i in self.instructions:
            check_known(i)

    @cached_property
    def flat(self) -> FlatKernel:
        """The kernel with its device calls expanded."""
        return expand_calls(self.module, self.entry)

    @cached_property
    def instructions(self) -> list[Instruction]:
        """All instructions in order of their index."""
        return [i for i in self.flat.body if isinstance(i, Instruction)]

    @cached_property
    def shared_variables(self) -> list[Variable]:
        """Shared arrays that the kernel names: its own, then module-scope ones."""
        used = {s for i in self.instructions for o in i.operands for s in _symbols(o)}
        own = [v for v in self.flat.variables.values() if v.space == "shared"]
        module = self.module.variables.values()
        return own + [v for v in module if v.space == "shared" and v.name in used]

    @cached_property
    def static_shared_bytes(self) -> int:
        """Bytes of statically declared shared memory."""
        return Layout(self.shared_variables, 0).static_bytes

    @cached_property
    def frame(self) -> FrameLayout:
        """The local memory of one thread."""
        variables = self.flat.variables.values()
        return FrameLayout([v for v in variables if v.space in ("local", "param")])

    @cached_property
    def granule(self) -> int:
        """Cell size of the shared shadow: the narrowest access that may be shared."""
        return min([4, *(_width(i) for i in self.instructions if _may_touch_shared(i))])

    @cached_property
    def cfg(self) -> Cfg:
        """The control-flow graph."""
        return Cfg(self.flat)

    @cached_property
    def endings(self) -> Endings:
        """How the scheduler leaves each block."""
        return Endings(self.cfg)

    @cached_property
    def code(self) -> Code:
        """The translated kernel."""
        symbols = {v.name: at for at, v in Layout(self.shared_variables, 0).variables}
        symbols |= self.frame.offsets
        symbols |= {name: slot_base(slot) for name, slot in module_slots(self.module).items()}
        entry_params = dict(zip((p.name for p in self.entry.params), self.offsets, strict=True))
        symbols |= {name: slot_base(PARAM_SLOT) + at for name, at in entry_params.items()}
        return Code(self.flat, self.cfg, symbols, entry_params)

    @cached_property
    def has_flags(self) -> bool:
        """True if blocks may order each other: a device-wide fence or acquire/release."""
        return any(
            not GLOBAL_FENCES.isdisjoint(i.modifiers)
            for i in self.instructions
            if i.root in ("membar", "fence", "atom", "red", "ld", "st")
        )


def _offsets(params: list[Variable]) -> list[int]:
    result, at = [], 0
    for p in params:
        at = -(-at // p.align) * p.align
        result.append(at)
        at += p.size
    return result


def module_slots(module: Module) -> dict[str, int]:
    """Address slots of the module's global and constant variables."""
    names = [v.name for v in module.variables.values() if v.space in ("global", "const")]
    return {name: MODULE_SLOT + n for n, name in enumerate(names)}


class Kernel:
    """One entry of a program; translated to Python on its first launch."""

    def __init__(self, program: Program, entry: Function):
        self.program, self.entry, self.name = program, entry, entry.name
        self.max_threads = entry.max_threads
        self.required_block = entry.required_threads
        translations = program.module.translations
        if entry.name not in translations:
            translations[entry.name] = Translation(program.module, entry)
        self.translation: Translation = translations[entry.name]
        self.params = self._parameters()

    @cached_property
    def source(self) -> list[str]:
        """The lines of the CUDA source."""
        return self.program.source.splitlines()

    @property
    def static_shared_bytes(self) -> int:
        """Bytes of statically declared shared memory."""
        return self.translation.static_shared_bytes

    def _parameters(self) -> list[Parameter]:
        names = parameter_names(self.program.source, self.name)
        if len(names) != len(self.entry.params):
            names = [p.name for p in self.entry.params]
        return [
            Parameter(name, p.type, p.size, p.align, at)
            for name, p, at in zip(names, self.entry.params, self.translation.offsets, strict=True)
        ]


def _symbols(operand) -> list[str]:
    if isinstance(operand, Symbol):
        return [operand.name]
    if isinstance(operand, Address):
        return _symbols(operand.base)
    if isinstance(operand, Vector):
        return [s for item in operand.items for s in _symbols(item)]
    return []


def _may_touch_shared(i: Instruction) -> bool:
    if i.root not in ("ld", "st", "atom", "red"):
        return False
    spaces = {"global", "local", "const", "param"}
    return spaces.isdisjoint(i.modifiers)


def _width(i: Instruction) -> int:
    return TYPE_BYTES.get(i.type, 4)


def parameter_names(source: str, kernel: str) -> list[str]:
    """Parameter names of a ``__global__`` function in the CUDA source; empty if not found."""
    plain = _plain_name(kernel)
    match = re.search(rf"__global__[^;{{]*?\b{re.escape(plain)}\s*\(", source)
    if match is None:
        return []
    depth, at, parts, start = 1, match.end(), [], match.end()
    while at < len(source) and depth:
        c = source[at]
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(c, 0)
        if (c == "," and depth == 1) or depth == 0:
            parts.append(source[start:at])
            start = at + 1
        at += 1
    names = []
    for part in parts:
        part = re.sub(r"/\*.*?\*/|//[^\n]*", "", part, flags=re.DOTALL)
        words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]|=.*", "", part))
        if words:
            names.append(words[-1])
    return names


def _plain_name(symbol: str) -> str:
    """The unqualified function name in a mangled symbol; other names are returned as they are."""
    if not symbol.startswith("_Z"):
        return symbol
    at, name = 2, symbol
    nested = symbol[at] == "N"
    at += nested
    while at < len(symbol) and symbol[at].isdigit():
        end = at
        while symbol[end].isdigit():
            end += 1
        length = int(symbol[at:end])
        name = symbol[end : end + length]
        at = end + length
        if not nested:
            break
    return name
