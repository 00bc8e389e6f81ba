"""Comparison and selection: setp, set, selp, slct."""

from __future__ import annotations

import numpy as np

from ..ptx import Instruction, Vector
from .table import HALVES, dtype_of, opcode

_ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_UNORDERED = {"equ": "!=", "neu": "==", "ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}
_COMPARISONS = " ".join((*_ORDERED, *_UNSIGNED, *_UNORDERED, "num", "nan"))
_TYPES = f"b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 {HALVES}"


def comparison(g, i: Instruction, name: str, kind: str, a, b) -> str:
    """Bool expression for ``a name b`` in type ``kind``; packed halves gain an axis of 2."""
    left, right = g.read(a, dtype_of(kind, i)), g.read(b, dtype_of(kind, i))
    is_float = kind in ("f32", "f64") or kind in HALVES.split()
    if kind in HALVES.split():
        left, right = (f"floating.unpack_half({x}, {kind!r}, f4)" for x in (left, right))
    elif is_float and "ftz" in i.modifiers:
        left, right = f"fmt.flush({left})", f"fmt.flush({right})"
    if name in _UNORDERED:
        return (
            f"~({left} {_UNORDERED[name]} {right})"
            if name != "equ" and name != "neu"
            else (
                f"~(({left} < {right}) | ({left} > {right}))"
                if name == "equ"
                else f"~({left} == {right})"
            )
        )
    if name == "num":
        return f"~(np.isnan({left}) | np.isnan({right}))"
    if name == "nan":
        return f"(np.isnan({left}) | np.isnan({right}))"
    if name == "ne" and is_float:
        return f"(({left} < {right}) | ({left} > {right}))"
    return f"({left} {(_ORDERED | _UNSIGNED)[name]} {right})"


@opcode("setp", f"{_COMPARISONS} and or xor ftz {_TYPES}")
def setp(g, i: Instruction) -> None:
    """p|q = (a cmp b) combined with c, and its complement's combination."""
    kind = i.type
    result = comparison(g, i, i.modifiers[0], kind, i.operands[1], i.operands[2])
    pair = i.operands[0]
    dests = pair.items if isinstance(pair, Vector) else (pair,)
    combine = next((m for m in i.modifiers if m in ("and", "or", "xor")), None)
    if kind.endswith("x2"):
        name = g.temporary(result)
        outcomes = [f"{name}[..., 0]", f"{name}[..., 1]"]
    elif len(dests) == 1:
        outcomes = [result]
    else:
        name = g.temporary(result)
        outcomes = [name, f"~{name}"]
    if combine:
        sign = {"and": "&", "or": "|", "xor": "^"}[combine]
        other = g.predicate(i, 3)
        outcomes = [f"({outcome}) {sign} {other}" for outcome in outcomes]
    if len(dests) > 1:
        outcomes = [g.temporary(outcome) for outcome in outcomes]
    for dest, outcome in zip(dests, outcomes, strict=False):
        g.write(dest, "?", outcome)


def mask_value(result, kind: str):
    """set: all ones (integers) or 1.0 where true."""
    if kind in ("f16x2", "bf16x2", "u16x2"):
        one = {"f16x2": 0x3C00, "bf16x2": 0x3F80, "u16x2": 0xFFFF}[kind]
        bits = np.where(result, np.uint16(one), np.uint16(0))
        return np.ascontiguousarray(bits).view(np.uint32)[..., 0]
    ones = {
        "f32": np.float32(1),
        "f16": np.uint16(0x3C00),
        "bf16": np.uint16(0x3F80),
        "u32": np.uint32(0xFFFFFFFF),
        "s32": np.int32(-1),
        "u16": np.uint16(0xFFFF),
        "s16": np.int16(-1),
    }
    return np.where(result, ones[kind], ones[kind].dtype.type(0))


@opcode("set", f"{_COMPARISONS} and or xor ftz {_TYPES} u16x2")
def set_(g, i: Instruction) -> None:
    """d = mask of (a cmp b)."""
    to, kind = i.modifiers[-2], i.type
    result = comparison(g, i, i.modifiers[0], kind, i.operands[1], i.operands[2])
    if kind.endswith("x2") and not to.endswith("x2"):
        to = "u16x2"
    dtype = "u4" if to.endswith("x2") else dtype_of(to, i)
    g.write(i.operands[0], dtype, f"compare.mask_value({result}, {to!r})")


@opcode("selp", f"{_TYPES} pred")
def selp(g, i: Instruction) -> None:
    """d = p ? a : b."""
    a, b, p = g.source(i, 1), g.source(i, 2), g.predicate(i, 3)
    g.write(i.operands[0], g.dtype(i), f"where({p}, {a}, {b})")


@opcode("slct", f"{_TYPES} ftz")
def slct(g, i: Instruction) -> None:
    """d = c >= 0 ? a : b; the last type is c's."""
    kind = i.modifiers[-2]
    a, b = (g.source(i, n, kind) for n in (1, 2))
    c = g.source(i, 3)
    g.write(i.operands[0], dtype_of(kind, i), f"where({c} >= 0, {a}, {b})")
