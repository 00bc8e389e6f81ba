"""Basic blocks to Python functions made of NumPy calls.

Registers are immutable arrays: an instruction makes a new array and binds it to the register's
name, so views, casts and address patterns may be shared and remembered freely. A block has two
functions:

* *fast*, ``f_k(R)``: all lanes of the wave run it; it covers the fused blocks k..fused_until[k];
* *masked*, ``m_k(R, M)``: only the lanes of mask ``M`` do; other lanes keep their old values.

``R`` is the register file: a list of the registers that live across blocks.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from .calls import FlatKernel
from .cfg import Block, Cfg, live_in
from .faults import PtxError
from .instructions import TABLE, check_known, destinations, dtype_of, immediate
from .instructions.memory import can_join_group
from .instructions.table import CARRY
from .ptx import TYPE_BYTES, Address, Imm, Instruction, Reg, Special, Symbol, Vector

_ADDRESSING = {"ld", "st", "atom", "red", "ldu", "cp", "ldmatrix", "stmatrix", "prefetch"}
_CLOBBERS = {"st", "atom", "red", "cp", "stmatrix", "bar", "barrier", "call"}
_FAMILY_ROOTS = {"add", "mov", "cvta", "sub"}
_INTEGER_TYPES = {"s32", "u32", "b32", "s64", "u64", "b64"}


class Code:
    """The translated kernel: source text, compiled code, constants and site factories."""

    def __init__(
        self,
        kernel: FlatKernel,
        cfg: Cfg,
        symbols: dict[str, int],
        parameter_offsets: dict[str, int],
    ):
        self.kernel, self.cfg, self.symbols = kernel, cfg, symbols
        self.parameter_offsets = parameter_offsets
        self.constants: dict[tuple, str] = {}
        self.numbers: dict[str, int] = {}  # register -> number in variable names
        self.namespace: dict[str, object] = {}
        self.sites: dict[str, object] = {}  # name -> factory(launch)
        self.specials: dict[str, tuple[str, str]] = {}  # name -> (special register, dtype)
        self.params: dict[str, tuple[int, str]] = {}  # name -> (offset, dtype)
        for block in cfg.blocks:
            for i in block.instructions:
                check_known(i)
        self.widths = {r: TYPE_BYTES[t] for r, t in kernel.registers.items()}
        self.widths[CARRY.name] = 1
        self.family = self._address_family()
        self.canonical = self._canonical_dtypes()
        self.live = live_in(cfg.blocks, reads_writes)
        self.exposed = set().union(*self.live)
        self.slots = {name: n for n, name in enumerate(sorted(self.exposed))}
        self.compiled: dict[str, object] = {}

    def function(self, name: str):
        """Compiled code that defines ``f_k``, ``m_k`` or ``c_k``; made on first use."""
        if name not in self.compiled:
            kind, index = name[0], int(name[2:])
            last = self.cfg.fused_until[index] if kind == "f" else index
            emitter = Emitter(self, self.cfg.blocks[index : last + 1], masked=kind != "f")
            lines = emitter.members() if kind == "c" else emitter.function()
            self.compiled[name] = compile("\n".join(lines), f"<{self.kernel.name} {name}>", "exec")
        return self.compiled[name]

    def constant(self, imm: Imm, dtype: str) -> str:
        """Name of a (1, 1) constant array."""
        key = (imm, dtype)
        if key not in self.constants:
            name = self.constants[key] = f"k{len(self.constants)}"
            self.namespace[name] = immediate(imm, dtype)
        return self.constants[key]

    def _address_family(self) -> set[str]:
        """Registers held as (pattern, offset): address bases and what they are summed from."""
        definitions: dict[str, list[Instruction]] = {}
        family: set[str] = set()
        for block in self.cfg.blocks:
            for i in block.instructions:
                for r in destinations(i):
                    definitions.setdefault(r.name, []).append(i)
                if i.root in _ADDRESSING:
                    bases = (o.base for o in i.operands if isinstance(o, Address))
                    family |= {b.name for b in bases if isinstance(b, Reg)}
        todo = list(family)
        while todo:
            for i in definitions.get(todo.pop(), []):
                if is_family_step(i):
                    new = {o.name for o in i.operands[1:] if isinstance(o, Reg)} - family
                    family |= new
                    todo += new
        return {r for r in family if self.widths.get(r, 0) in (4, 8)}

    def _canonical_dtypes(self) -> dict[str, str]:
        """The dtype in which each register is kept across blocks: the one it is mostly made in."""
        votes: dict[str, Counter] = {}
        for i in (i for block in self.cfg.blocks for i in block.instructions):
            for r in destinations(i):
                if r is CARRY:
                    continue
                dtype = next((dtype_of(m, i) for m in i.modifiers if m in TYPE_BYTES), "u4")
                if i.root != "cvt" and np.dtype(dtype).itemsize == self.widths[r.name]:
                    weight = 1 if i.root == "mov" or i.type.startswith("b") else 10
                    votes.setdefault(r.name, Counter())[dtype] += weight
        canonical = {CARRY.name: "?"} | {
            r: dtype_of(t, None) for r, t in self.kernel.registers.items()
        }
        for r, count in votes.items():
            if canonical[r] != "?":
                canonical[r] = count.most_common(1)[0][0]
        return canonical


def is_family_step(i: Instruction) -> bool:
    """True for the instructions that address arithmetic can follow (no mask merge inside)."""
    if i.root not in _FAMILY_ROOTS or i.type not in _INTEGER_TYPES:
        return False
    if any(isinstance(o, (Vector, Special)) for o in i.operands):
        return False
    if "cc" in i.modifiers:
        return False
    return set(i.modifiers) <= _INTEGER_TYPES | {"to", "global", "const", "param"}


def reads_writes(i: Instruction) -> tuple[set[str], set[str]]:
    """Register names read, and those fully written (a guarded write keeps the old value)."""
    written = {r.name for r in destinations(i)}
    reads: set[str] = {CARRY.name} if i.root in ("addc", "subc", "madc") else set()
    for operand in i.operands[TABLE[i.root].dests :]:
        reads |= {r.name for r in _registers(operand)}
    for operand in i.operands[: TABLE[i.root].dests]:
        if isinstance(operand, Address):
            reads |= {r.name for r in _registers(operand)}
    if i.guard:
        reads |= {i.guard.name} | written
        return reads - {"_"}, set()
    return reads - {"_"}, written


def _registers(operand) -> list[Reg]:
    if isinstance(operand, Reg):
        return [operand]
    if isinstance(operand, Address):
        return _registers(operand.base)
    if isinstance(operand, Vector):
        return [r for item in operand.items for r in _registers(item)]
    return []


class Emitter:
    """Writes one function for a chain of blocks."""

    def __init__(self, code: Code, chain: list[Block], masked: bool):
        self.code, self.chain, self.masked = code, chain, masked
        self.lines: list[str] = []
        self.have: dict[str, dict[str, str]] = {}  # register -> dtype -> variable
        self.pairs: dict[str, tuple[str, str]] = {}  # family register -> (pattern, offset)
        self.defined: set[str] = set()
        self.doubled: set[str] = set()
        self.temporaries = 0
        self.instruction: Instruction | None = None
        self._lanes: str | None = None
        self.groups: dict[int, str] = {}  # first member -> variable with all values
        self._groups = self._find_groups()

    def _find_groups(self) -> dict[int, tuple[list[Instruction], int]]:
        """Runs of shared loads that may be done together: index -> (members, position)."""
        found: dict[int, tuple[list[Instruction], int]] = {}
        open_groups: dict[tuple, list[Instruction]] = {}
        for i in (i for block in self.chain for i in block.instructions):
            if can_join_group(i):
                dests = len(destinations(i))
                key = (i.operands[1].base.name, i.modifiers, dests, i.place)
                members = open_groups.setdefault(key, [])
                found[i.index] = (members, len(members))
                members.append(i)
            elif i.root in _CLOBBERS:
                open_groups.clear()
            for r in destinations(i):
                for key in [k for k in open_groups if k[0] == r.name]:
                    del open_groups[key]
        return {n: group for n, group in found.items() if len(group[0]) > 1}

    def group_of(self, i: Instruction) -> tuple[list[Instruction], int] | None:
        """The load group of an instruction and its position in it, or None."""
        return self._groups.get(i.index)

    def write_part(self, dest: Reg, dtype: str, whole: str, position: int) -> None:
        """Give a register one part of a group of loads; doubles are then made for all at once."""
        self.write(dest, dtype, f"{whole}[{position}]")
        if dtype == "f4" and dest.name in self.have and self.lanes() is None:
            self.have[dest.name]["part"] = f"{whole}[{position}]"

    def function(self) -> list[str]:
        """The function's source lines."""
        head = self.chain[0].index
        name, args = (f"m_{head}", "R, M") if self.masked else (f"f_{head}", "R")
        self.result = "None"
        for block in self.chain:
            for i in block.instructions:
                self.instruction, self._lanes = i, None
                TABLE[i.root].emit(self, i)
        self._store_live_registers()
        start = [f"def {name}({args}):"] + (["    Ma = M.array"] if self.masked else [])
        return [*start, *self.lines, f"    return {self.result}"]

    def members(self) -> list[str]:
        """``c_k(R)``: the member mask of the collective at the block's head, or None for all."""
        self.instruction = i = self.chain[0].collective
        named = "None"
        if i.root in ("shfl", "vote", "match", "redux", "elect"):
            named = self.read(i.operands[-1], "u4")
        elif i.root == "bar":
            named = self.read(i.operands[0], "u4")
        return [f"def c_{self.chain[0].index}(R):", *self.lines, f"    return {named}"]

    def _store_live_registers(self) -> None:
        live = set().union(*(self.code.live[s] for s in self.chain[-1].successors))
        keep = self.defined & (self.code.exposed if self.masked else live)
        for r in sorted(keep):
            slot = self.code.slots[r]
            if r in self.code.family:
                pattern, offset = self.pair(r)
                self.line(f"R[{slot}] = ({pattern}, {offset})")
            else:
                self.line(f"R[{slot}] = {self.register(r, self.code.canonical[r])}")

    def line(self, text: str) -> None:
        """Append one statement."""
        self.lines.append("    " + text)

    def temporary(self, expression: str) -> str:
        """Bind an expression to a fresh variable and return its name."""
        self.temporaries += 1
        name = f"t{self.temporaries}"
        self.line(f"{name} = {expression}")
        return name

    # ---- lanes --------------------------------------------------------------------------------

    def guard(self, i: Instruction) -> str | None:
        """The guard predicate as an expression, or None."""
        if not i.guard:
            return None
        predicate = self.register(i.guard.name, "?")
        return f"~{predicate}" if i.guard_negated else predicate

    def lanes(self) -> str | None:
        """Bool array of the lanes that execute the present instruction; None = all.

        Evaluated once, since the instruction may write its own guard.
        """
        if self.instruction.guard is None:
            return "Ma" if self.masked else None
        if self._lanes is None:
            guard = self.guard(self.instruction)
            self._lanes = self.temporary(f"Ma & {guard}" if self.masked else guard)
        return self._lanes

    def mask(self) -> str:
        """The same as a ``Mask`` object or ``None``, for memory sites."""
        if self.instruction.guard is None:
            return "M" if self.masked else "None"
        return f"book.mask({self.lanes()})"

    # ---- reading ------------------------------------------------------------------------------

    def _var(self, r: str) -> str:
        return f"r{self.code.numbers.setdefault(r, len(self.code.numbers))}"

    def register(self, r: str, dtype: str) -> str:
        """Variable that holds register ``r`` seen as ``dtype``."""
        if r not in self.code.widths:
            raise PtxError(f"PTX line {self.instruction.ptx_line}: unknown register {r}")
        have = self.have.setdefault(r, {})
        if dtype in have:
            return have[dtype]
        if not have:
            self._materialise(r, dtype, have)
            if dtype in have:
                return have[dtype]
        source, var = next((d, v) for d, v in have.items() if d not in ("double", "part"))
        have[dtype] = f"{self._var(r)}_{dtype if dtype != '?' else 'p'}"
        self.line(f"{have[dtype]} = {_reinterpret(var, source, dtype)}")
        return have[dtype]

    def _materialise(self, r: str, dtype: str, have: dict) -> None:
        var = self._var(r)
        if r in self.code.family:
            pattern, offset = self.pair(r)
            width = self.code.widths[r]
            plain = dtype if np.dtype(dtype).itemsize == width else f"u{width}"
            self.line(f"{var} = book.value({pattern}, {offset}, {plain})")
            have[plain] = var
            return
        canonical = self.code.canonical[r]
        slot = self.code.slots.get(r)
        value = f"R[{slot}]" if slot is not None else f"np.zeros((1, 1), '{canonical}')"
        self.line(f"{var} = {value}")
        have[canonical] = var

    def pair(self, r: str) -> tuple[str, str]:
        """Variables (pattern, offset) of a family register."""
        if r not in self.pairs:
            var = self._var(r)
            slot = self.code.slots.get(r)
            value = f"R[{slot}]" if slot is not None else "(zero, 0)"
            self.line(f"a{var}, o{var} = {value}")
            self.pairs[r] = (f"a{var}", f"o{var}")
        return self.pairs[r]

    def read(self, operand, dtype: str) -> str:
        """An operand as an expression of ``dtype``."""
        if isinstance(operand, Reg):
            return self.register(operand.name, dtype)
        if isinstance(operand, Imm):
            return self.code.constant(operand, dtype)
        if isinstance(operand, Special):
            name = f"sr_{operand.name.replace('.', '_')}_{dtype}"
            self.code.specials[name] = (operand.name, dtype)
            return name
        if isinstance(operand, Symbol):
            return self.code.constant(Imm(self.symbol(operand)), dtype)
        raise PtxError(
            f"PTX line {self.instruction.ptx_line}: operand {operand} in {self.instruction.text}"
        )

    def source(self, i: Instruction, n: int, type_name: str | None = None) -> str:
        """Operand ``n`` as the instruction's type (or ``type_name``)."""
        return self.read(i.operands[n], dtype_of(type_name or i.type, i))

    def double(self, operand) -> str:
        """A float32 operand widened to float64, remembered while the register lives."""
        if isinstance(operand, Reg):
            single = self.register(operand.name, "f4")
            have = self.have[operand.name]
            if "part" in have and "double" not in have:
                whole, position = have["part"][:-1].split("[")
                if f"{whole}_d" not in self.doubled:
                    self.doubled.add(f"{whole}_d")
                    self.line(f"{whole}_d = {whole}.astype(f8)")
                have["double"] = f"{self._var(operand.name)}_d"
                self.line(f"{have['double']} = {whole}_d[{position}]")
            if "double" not in have:
                have["double"] = f"{self._var(operand.name)}_d"
                self.line(f"{have['double']} = {single}.astype(f8)")
            return have["double"]
        name = self.code.constant(operand, "f4")
        self.code.namespace[f"{name}_d"] = self.code.namespace[name].astype(np.float64)
        return f"{name}_d"

    def dtype(self, i: Instruction) -> str:
        """NumPy dtype of the instruction's type."""
        return dtype_of(i.type, i)

    def write_typed(self, i: Instruction, template: str, *operands: int) -> None:
        """Operand 0 = ``template`` filled with the given operands, all of the one type."""
        values = [self.source(i, n) for n in operands]
        self.write(i.operands[0], self.dtype(i), template.format(*values))

    def predicate(self, i: Instruction, n: int) -> str:
        """Operand ``n`` as a bool array, with its ``!`` applied."""
        value = self.read(i.operands[n], "?")
        return f"~{value}" if n in i.negated else value

    def symbol(self, symbol: Symbol) -> int:
        """Address of a variable."""
        if symbol.name not in self.code.symbols:
            raise PtxError(
                f"PTX line {self.instruction.ptx_line}: unknown symbol {symbol.name} "
                f"in {self.instruction.text}"
            )
        return self.code.symbols[symbol.name] + symbol.offset

    def address(self, operand) -> tuple[str, str]:
        """A memory operand as (pattern, offset) expressions."""
        if not isinstance(operand, Address):
            raise PtxError(f"PTX line {self.instruction.ptx_line}: address expected")
        base = operand.base
        if isinstance(base, Symbol):
            return "zero", str(self.symbol(base) + operand.offset)
        if isinstance(base, Imm):
            return "zero", str(base.value + operand.offset)
        if base.name in self.code.family:
            pattern, offset = self.pair(base.name)
        else:
            width = self.code.widths[base.name]
            value = self.register(base.name, f"i{width}")
            self.temporaries += 1
            pattern, offset = f"a{self.temporaries}", f"o{self.temporaries}"
            self.line(f"{pattern}, {offset} = book.root({value})")
        return pattern, f"{offset} + {operand.offset}" if operand.offset else offset

    # ---- writing ------------------------------------------------------------------------------

    def write(self, operand: Reg, dtype: str, expression: str) -> None:
        """Give a register a new value of ``dtype`` (as wide as the register)."""
        if operand.name == "_":
            return
        r = operand.name
        if r in self.code.family:
            self.write_pair(operand, f"book.root({expression})")
            return
        width = np.dtype(dtype).itemsize
        if width != self.code.widths[r]:
            wide = f"{np.dtype(dtype).kind}{self.code.widths[r]}"
            expression, dtype = f"({expression}).astype({wide})", wide
        lanes, var = self.lanes(), self._var(r)
        if lanes and self._keeps_old(r):
            old = self.register(r, dtype)
            expression = f"where({lanes}, {expression}, {old})"
        self.line(f"{var} = {expression}")
        self.have[r] = {dtype: var}
        self.defined.add(r)

    def _keeps_old(self, r: str) -> bool:
        if self.masked and r in self.code.exposed:
            return True
        return self.instruction.guard is not None and (r in self.defined or r in self.code.exposed)

    def write_pair(self, operand: Reg, expression: str) -> None:
        """Give a family register a new (pattern, offset)."""
        r = operand.name
        lanes, var = self.lanes(), self._var(r)
        if lanes and self._keeps_old(r):
            pattern, offset = self.pair(r)
            expression = f"book.merge({lanes}, {expression}, ({pattern}, {offset}))"
        self.line(f"a{var}, o{var} = {expression}")
        self.pairs[r] = (f"a{var}", f"o{var}")
        self.have.pop(r, None)
        self.defined.add(r)

    def site(self, factory, name: str = "") -> str:
        """Register the per-launch object of this instruction; return its name."""
        name = name or f"s{self.instruction.index}"
        self.code.sites[name] = factory
        return name

    def parameter(self, offset: int, dtype: str) -> str:
        """Name of a kernel parameter's value, a (1, 1) array set at launch."""
        name = f"p{offset}_{dtype}"
        self.code.params[name] = (offset, dtype)
        return name

    def is_kernel_parameter(self, operand) -> bool:
        """True for ``[kernel_param_n]`` (as opposed to a call's ``.param`` variable)."""
        base = operand.base
        return isinstance(base, Symbol) and base.name in self.code.parameter_offsets

    def parameter_offset(self, name: str) -> int:
        """Byte offset of a kernel parameter."""
        return self.code.parameter_offsets[name]

    def finish(self, expression: str) -> None:
        """The value that the function returns to the scheduler."""
        self.result = expression

    def in_family(self, i: Instruction) -> bool:
        """True if this step of address arithmetic can stay symbolic."""
        dest = i.operands[0]
        return isinstance(dest, Reg) and dest.name in self.code.family and is_family_step(i)

    def pair_of(self, operand) -> str:
        """An operand of address arithmetic as ``pattern, offset``."""
        if isinstance(operand, Imm):
            return f"zero, {operand.value}"
        if isinstance(operand, Symbol):
            return f"zero, {self.symbol(operand)}"
        return ", ".join(self.pair(operand.name))


def _reinterpret(var: str, source: str, dtype: str) -> str:
    have, want = np.dtype(source).itemsize, np.dtype(dtype).itemsize
    if have == want:
        return f"{var}.view({dtype})"
    if np.dtype(source).kind == "f":
        var = f"{var}.view(u{have})"
    if np.dtype(dtype).kind == "f":
        return f"{var}.astype(u{want}).view({dtype})"
    return f"{var}.astype({dtype})"
