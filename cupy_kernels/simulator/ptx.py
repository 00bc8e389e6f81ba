"""The parts of a PTX module as plain data: what the parser makes and everything else reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from .faults import Place

TYPE_BYTES = {
    "pred": 1,
    **{f"{kind}8": 1 for kind in "bus"},
    **{f"{kind}16": 2 for kind in ("b", "u", "s", "f", "bf")},
    **{f"{kind}32": 4 for kind in ("b", "u", "s", "f", "tf")},
    **{f"{kind}64": 8 for kind in ("b", "u", "s", "f")},
    "f16x2": 4,
    "bf16x2": 4,
    "b128": 16,
    "e4m3x2": 2,
    "e5m2x2": 2,
}


@dataclass(frozen=True)
class Reg:
    """A register operand, by its name after scope renaming."""

    name: str


@dataclass(frozen=True)
class Imm:
    """An immediate: its bits as a Python integer (may be negative) and whether it was 0f/0d."""

    value: int
    floating: str = ""


@dataclass(frozen=True)
class Special:
    """A special register such as ``%tid.x``."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, plus an offset in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """A memory operand ``[base+offset]``; the base is a register, a symbol or an immediate."""

    base: Reg | Symbol | Imm
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """A brace-enclosed operand ``{a, b, ...}``."""

    items: tuple


Operand = Reg | Imm | Special | Symbol | Address | Vector


@dataclass
class Instruction:
    """One PTX instruction. ``operands`` are in PTX order; ``negated`` marks ``!%p`` operands."""

    root: str
    modifiers: tuple[str, ...]
    operands: list
    guard: Reg | None
    guard_negated: bool
    place: Place
    ptx_line: int
    text: str
    negated: frozenset[int] = frozenset()
    target: str = ""  # branch target label, call target
    index: int = -1  # position in the kernel, after calls were expanded

    @property
    def type(self) -> str:
        """The last modifier, which by PTX convention is the (source) type."""
        return self.modifiers[-1] if self.modifiers else ""

    @property
    def opcode(self) -> str:
        """The full opcode as written."""
        return ".".join((self.root, *self.modifiers))


@dataclass(frozen=True)
class Label:
    """A branch target in an instruction list."""

    name: str


@dataclass
class Variable:
    """A named piece of memory. ``space`` is shared, local, const, global or param."""

    name: str
    space: str
    size: int
    align: int = 4
    type: str = "b8"
    data: bytes | None = None
    symbols: list[tuple[int, str]] = field(default_factory=list)  # pointers in an initialiser
    dynamic: bool = False


@dataclass
class Function:
    """A ``.entry`` or ``.func``: its parameters, registers, variables and instruction list."""

    name: str
    is_entry: bool
    params: list[Variable] = field(default_factory=list)
    returns: list[Variable] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)  # name -> declared type
    variables: dict[str, Variable] = field(default_factory=dict)
    body: list = field(default_factory=list)
    branch_tables: dict[str, list[str]] = field(default_factory=dict)
    max_threads: int | None = None
    required_threads: tuple[int, ...] | None = None
    has_body: bool = False


@dataclass
class Module:
    """A parsed PTX file."""

    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    target: str = ""
    translations: dict[str, object] = field(default_factory=dict)  # by kernel, see ``kernel``
