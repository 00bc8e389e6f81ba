"""Device function calls, expanded: every ``call`` becomes a renamed copy of the callee's body.

The simulator then sees one flat kernel, so divergence, barriers and counters inside a device
function need no rules of their own. ``.param`` variables of a call are plain per-thread memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .faults import Place, PtxError
from .ptx import Address, Function, Instruction, Label, Module, Reg, Symbol, Variable, Vector

RUNTIME_CALLS = {"vprintf", "__assertfail"}
# Instructions that a guard may not switch off inside a block: a branch goes around them instead.
_NEVER_GUARDED = {"shfl", "vote", "match", "redux", "mma", "ldmatrix", "stmatrix", "elect"}
_NEVER_GUARDED |= {"bar", "barrier", "trap", "brkpt", "call"}
_MAX_DEPTH = 24


@dataclass
class FlatKernel:
    """An entry with its calls expanded: one instruction list, one name space."""

    name: str
    entry: Function
    body: list = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    branch_tables: dict[str, list[str]] = field(default_factory=dict)


def expand_calls(module: Module, entry: Function) -> FlatKernel:
    """Return ``entry`` with every call to a function of the module replaced by its body."""
    flat = FlatKernel(entry.name, entry)
    _Expander(module, flat).copy(entry, _Names(""), None, 0)
    for index, instruction in enumerate(i for i in flat.body if isinstance(i, Instruction)):
        instruction.index = index
    return flat


@dataclass
class _Names:
    """How the names of one expanded function instance are spelled in the flat kernel."""

    prefix: str
    params: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)

    def register(self, name: str) -> str:
        return name if name == "_" else self.prefix + name

    def symbol(self, name: str) -> str:
        if name in self.params:
            return self.params[name]
        return self.prefix + name if name in self.own else name

    def operand(self, operand):
        if isinstance(operand, Reg):
            return Reg(self.register(operand.name))
        if isinstance(operand, Symbol):
            return Symbol(self.symbol(operand.name), operand.offset)
        if isinstance(operand, Address):
            return Address(self.operand(operand.base), operand.offset)
        if isinstance(operand, Vector):
            return Vector(tuple(self.operand(item) for item in operand.items))
        return operand


class _Expander:
    def __init__(self, module: Module, flat: FlatKernel):
        self.module, self.flat, self.instances = module, flat, 0

    def copy(self, function: Function, names: _Names, caller: Place | None, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise PtxError(
                f"kernel {self.flat.name}: {function.name} calls itself; recursion is not simulated"
            )
        names.own = {name for name, v in function.variables.items() if v.space != "shared"}
        flat = self.flat
        for name, kind in function.registers.items():
            flat.registers[names.register(name)] = kind
        for name, variable in function.variables.items():
            new = names.symbol(name)
            flat.variables[new] = replace(variable, name=new)
        for name, targets in function.branch_tables.items():
            flat.branch_tables[names.prefix + name] = [names.prefix + t for t in targets]
        end = f"{names.prefix}@return"
        for item in function.body:
            if isinstance(item, Label):
                flat.body.append(Label(names.prefix + item.name))
            else:
                self.instruction(item, names, caller, depth, end)
        if names.prefix:
            flat.body.append(Label(end))

    def instruction(self, item: Instruction, names, caller, depth, end) -> None:
        place = item.place if caller is None else _called_from(item.place, caller)
        operands = item.operands
        if item.root != "call":
            operands = [names.operand(o) for o in operands]
        guard = names.operand(item.guard) if item.guard else None
        copy = replace(item, operands=operands, guard=guard, place=place)
        if item.root in ("bra", "brx"):
            copy.target = names.prefix + item.target
        if item.root == "ret" and names.prefix:
            copy = replace(copy, root="bra", modifiers=(), target=end)
        if copy.guard and item.root in _NEVER_GUARDED:
            self.around(copy, names, depth)
        elif item.root == "call":
            self.call(copy, names, depth)
        else:
            self.flat.body.append(copy)

    def around(self, item: Instruction, names: _Names, depth: int) -> None:
        """``@p op`` becomes ``@!p bra skip; op; skip:``."""
        self.instances += 1
        skip = f"@skip{self.instances}"
        branch = replace(
            item,
            root="bra",
            modifiers=(),
            operands=[],
            target=skip,
            guard_negated=not item.guard_negated,
        )
        self.flat.body.append(branch)
        bare = replace(item, guard=None, guard_negated=False)
        if item.root == "call":
            self.call(bare, names, depth)
        else:
            self.flat.body.append(bare)
        self.flat.body.append(Label(skip))

    def call(self, call: Instruction, names: _Names, depth: int) -> None:
        returns, arguments = ([names.symbol(n) for n in group] for group in call.operands)
        if call.target in RUNTIME_CALLS:
            call.operands = [returns, arguments]
            self.flat.body.append(call)
            return
        callee = self.module.functions.get(call.target)
        if callee is None or not callee.has_body:
            raise PtxError(
                f"PTX line {call.ptx_line}: the device function {call.target} has no body here; "
                f"the simulator knows {', '.join(sorted(RUNTIME_CALLS))} ({call.place})"
            )
        self.instances += 1
        prefix = f"{call.target}#{self.instances}:"
        bound = [v.name for v in (*callee.params, *callee.returns)]
        inner = _Names(prefix, dict(zip(bound, (*arguments, *returns), strict=True)))
        self.copy(callee, inner, call.place, depth + 1)


def _called_from(place: Place, caller: Place) -> Place:
    return replace(place, call_lines=(*place.call_lines, caller.line, *caller.call_lines))
