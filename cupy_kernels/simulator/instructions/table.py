"""The opcode table: every root opcode, the modifiers it may carry and how it becomes NumPy.

An emitter takes the code generator ``g`` and the instruction ``i`` and writes Python statements
through ``g``. Anything not on an opcode's list is an error before the kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..faults import PtxError
from ..ptx import Imm, Instruction, Reg, Vector

DTYPE = {
    "pred": "?",
    **dict.fromkeys(("b8", "u8"), "u1"),
    "s8": "i1",
    **dict.fromkeys(("b16", "u16", "bf16", "e4m3x2", "e5m2x2"), "u2"),
    "s16": "i2",
    "f16": "u2",
    **dict.fromkeys(("b32", "u32", "f16x2", "bf16x2"), "u4"),
    "s32": "i4",
    **dict.fromkeys(("f32", "tf32"), "f4"),
    **dict.fromkeys(("b64", "u64"), "u8"),
    "s64": "i8",
    "f64": "f8",
}
INTEGERS = "s16 u16 s32 u32 s64 u64"
BITS = "b16 b32 b64"
HALVES = "f16 f16x2 bf16 bf16x2"
CARRY = Reg("CC")  # the carry flag of the .cc instructions, a predicate register here


@dataclass(frozen=True)
class Opcode:
    """One row of the table. ``dests`` = how many leading operands are written."""

    root: str
    modifiers: frozenset[str]
    emit: Callable
    dests: int


TABLE: dict[str, Opcode] = {}


def opcode(root: str, modifiers: str = "", dests: int = 1):
    """Register an emitter for ``root`` with its allowed modifiers (blank-separated)."""

    def register(emit: Callable) -> Callable:
        for name in root.split():
            TABLE[name] = Opcode(name, frozenset(modifiers.split()), emit, dests)
        return emit

    return register


def check_known(i: Instruction) -> None:
    """Raise ``PtxError`` if the opcode or one of its modifiers is not in the table."""
    entry = TABLE.get(i.root)
    where = f"PTX line {i.ptx_line} ({i.place})"
    if entry is None:
        raise PtxError(f"{where}: the simulator does not know the opcode {i.root!r}: {i.text}")
    for modifier in i.modifiers:
        if modifier not in entry.modifiers:
            raise PtxError(
                f"{where}: the simulator does not know the modifier .{modifier} of {i.root}: "
                f"{i.text}"
            )


def destinations(i: Instruction) -> list[Reg]:
    """Registers that the instruction writes."""
    found = []
    for operand in i.operands[: TABLE[i.root].dests]:
        items = operand.items if isinstance(operand, Vector) else (operand,)
        found += [r for r in items if isinstance(r, Reg) and r.name != "_"]
    return [*found, CARRY] if "cc" in i.modifiers else found


def dtype_of(type_name: str, i: Instruction) -> str:
    """NumPy dtype of a PTX type."""
    if type_name not in DTYPE:
        raise PtxError(f"PTX line {i.ptx_line}: type .{type_name} is not supported in {i.text}")
    return DTYPE[type_name]


def immediate(imm: Imm, dtype: str) -> np.ndarray:
    """An immediate as a (1, 1) array of ``dtype`` (bits are reinterpreted, not converted)."""
    kind = np.dtype(dtype)
    if dtype == "?":
        return np.full((1, 1), bool(imm.value))
    width = kind.itemsize
    if imm.floating == "f64" and width == 4 and kind.kind == "f":
        value = np.frombuffer(imm.value.to_bytes(8, "little"), np.float64)
        return value.astype(np.float32).reshape(1, 1)
    if imm.floating == "f32" and width == 8 and kind.kind == "f":
        value = np.frombuffer(imm.value.to_bytes(4, "little"), np.float32)
        return value.astype(np.float64).reshape(1, 1)
    bits = (imm.value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    return np.frombuffer(bits, kind).reshape(1, 1)
