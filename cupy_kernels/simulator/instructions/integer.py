"""Integer arithmetic. add, sub, mul and mad also serve the floating types; see ``floating``."""

from __future__ import annotations

import numpy as np

from ..faults import PtxError
from ..ptx import Imm, Instruction
from . import floating
from .table import CARRY, HALVES, INTEGERS, opcode

FLOATS = f"f32 f64 {HALVES} rn rz rm rp ftz sat"
_WIDE = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}


def is_integer(i: Instruction) -> bool:
    """True if the instruction's type is an integer type."""
    return i.type[0] in "su" and i.type[1:] in ("16", "32", "64", "16x2")


def int_div(a, b):
    """Quotient truncated toward zero; x/0 gives all ones, like the hardware."""
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    quotient = a // safe
    if a.dtype.kind == "i":
        minus = (safe == -1) & np.ones_like(a, bool)
        quotient = quotient + ((quotient < 0) & (quotient * safe != a))
        quotient = np.where(minus, np.negative(a), quotient)
    return np.where(b == 0, -1 if a.dtype.kind == "i" else ~a.dtype.type(0), quotient).astype(
        a.dtype
    )


def int_rem(a, b):
    """Remainder with the sign of the dividend."""
    return np.where(b == 0, a, a - int_div(a, b) * b).astype(a.dtype)


def mul_hi(a, b):
    """The upper half of the product, at any width."""
    if a.dtype.itemsize < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return ((a.astype(wide) * b) >> wide.type(8 * a.dtype.itemsize)).astype(a.dtype)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    middle = (ua >> shift) * (ub & low) + (((ua & low) * (ub & low)) >> shift)
    cross = (ua & low) * (ub >> shift) + (middle & low)
    high = (ua >> shift) * (ub >> shift) + (middle >> shift) + (cross >> shift)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
        return high.view(np.int64)
    return high


def add_saturating(a, b, sign: int):
    """s32 addition or subtraction clamped to the type's range."""
    total = a.astype(np.int64) + sign * b.astype(np.int64)
    return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)


@opcode("add", f"cc {INTEGERS} {FLOATS} u16x2 s16x2")
def add(g, i: Instruction) -> None:
    """d = a + b; on addresses the sum stays symbolic."""
    if "cc" in i.modifiers:
        a, b = (g.source(i, n, i.type.replace("s", "u")) for n in (1, 2))
        with_carry(g, i, a, b, False, False)
    elif g.in_family(i):
        a, b = (g.pair_of(o) for o in i.operands[1:])
        g.write_pair(i.operands[0], f"book.add({a}, {b})")
    elif not is_integer(i):
        floating.arithmetic(g, i, "+")
    elif i.type.endswith("x2"):
        a, b = (g.source(i, n, "u32") for n in (1, 2))
        g.write(i.operands[0], "u4", f"fmt.join_last(fmt.split_pair({a}) + fmt.split_pair({b}))")
    elif "sat" in i.modifiers:
        g.write(i.operands[0], "i4", f"integer.add_saturating({_two(g, i)}, 1)")
    else:
        g.write_typed(i, "{} + {}", 1, 2)


@opcode("sub", f"cc {INTEGERS} {FLOATS}")
def sub(g, i: Instruction) -> None:
    """d = a - b."""
    if "cc" in i.modifiers:
        a, b = (g.source(i, n, i.type.replace("s", "u")) for n in (1, 2))
        with_carry(g, i, a, b, False, True)
    elif g.in_family(i):
        a, b = (g.pair_of(o) for o in i.operands[1:])
        g.write_pair(i.operands[0], f"book.sub({a}, {b})")
    elif not is_integer(i):
        floating.arithmetic(g, i, "-")
    elif "sat" in i.modifiers:
        g.write(i.operands[0], "i4", f"integer.add_saturating({_two(g, i)}, -1)")
    else:
        g.write_typed(i, "{} - {}", 1, 2)


@opcode("mul", f"{INTEGERS} {FLOATS} lo hi wide")
def mul(g, i: Instruction) -> None:
    """d = a · b: lower half, upper half or full width."""
    if not is_integer(i):
        floating.arithmetic(g, i, "*")
    else:
        dtype, product = _product(g, i)
        g.write(i.operands[0], dtype, product)


@opcode("mad mul24 mad24", f"cc {INTEGERS} {FLOATS} lo hi wide")
def mad(g, i: Instruction) -> None:
    """d = a · b + c."""
    if i.root.endswith("24"):
        raise PtxError(f"PTX line {i.ptx_line}: 24-bit multiplication is not simulated: {i.text}")
    if not is_integer(i):
        floating.fma(g, i)
        return
    dtype, product = _product(g, i)
    if "cc" in i.modifiers:
        part = g.temporary(f"({product}).view({dtype.replace('i', 'u')})")
        with_carry(g, i, part, g.source(i, 3, i.type.replace("s", "u")), False, False)
        return
    g.write(i.operands[0], dtype, f"{product} + {g.read(i.operands[3], dtype)}")


def _product(g, i: Instruction) -> tuple[str, str]:
    a, b = g.source(i, 1), g.source(i, 2)
    dtype = g.dtype(i)
    if "wide" in i.modifiers:
        wide = f"{dtype[0]}{2 * int(dtype[1])}"
        return wide, f"{a}.astype({wide}) * {b}"
    if "hi" in i.modifiers:
        return dtype, f"integer.mul_hi({a}, {b})"
    return dtype, f"{a} * {b}"


@opcode("div", "s16 u16 s32 u32 s64 u64 f32 f64 rn rz rm rp ftz approx full")
def div(g, i: Instruction) -> None:
    """d = a / b."""
    if is_integer(i):
        g.write_typed(i, "integer.int_div({}, {})", 1, 2)
    else:
        floating.divide(g, i)


@opcode("rem", INTEGERS)
def rem(g, i: Instruction) -> None:
    """d = a mod b, sign of a."""
    g.write_typed(i, "integer.int_rem({}, {})", 1, 2)


@opcode("neg", f"s16 s32 s64 f32 f64 {HALVES} ftz")
def neg(g, i: Instruction) -> None:
    """d = -a."""
    if i.type in HALVES.split():
        sign = "0x8000" if i.type in ("f16", "bf16") else "0x80008000"
        dtype = g.dtype(i)
        g.write(i.operands[0], dtype, f"{g.source(i, 1)} ^ {dtype}({sign})")
    else:
        g.write_typed(i, floating.flushed(i, "-{}"), 1)


@opcode("abs", f"s16 s32 s64 f32 f64 {HALVES} ftz")
def absolute(g, i: Instruction) -> None:
    """d = |a|."""
    if i.type in HALVES.split():
        rest = "0x7FFF" if i.type in ("f16", "bf16") else "0x7FFF7FFF"
        dtype = g.dtype(i)
        g.write(i.operands[0], dtype, f"{g.source(i, 1)} & {dtype}({rest})")
    else:
        g.write_typed(i, floating.flushed(i, "np.abs({})"), 1)


@opcode("min max", f"{INTEGERS} f32 f64 {HALVES} ftz NaN xorsign abs u16x2 s16x2 relu")
def extremum(g, i: Instruction) -> None:
    """d = min or max; floats return the other operand for NaN unless ``.NaN``."""
    if not is_integer(i):
        floating.extremum(g, i)
    elif i.type.endswith("x2") or "relu" in i.modifiers:
        kind = "i2" if i.type == "s16x2" else "u2"
        if not i.type.endswith("x2"):
            g.write_typed(i, f"np.maximum(np.{i.root}imum({{}}, {{}}), 0)", 1, 2)
            return
        a, b = (f"fmt.split_pair({g.source(i, n, 'u32')}).view({kind})" for n in (1, 2))
        g.write(i.operands[0], "u4", f"fmt.join_last(np.{i.root}imum({a}, {b}).view(u2))")
    else:
        g.write_typed(i, f"np.{i.root}imum({{}}, {{}})", 1, 2)


@opcode("sad", INTEGERS)
def sad(g, i: Instruction) -> None:
    """d = c + |a - b|."""
    a, b, c = (g.source(i, n) for n in (1, 2, 3))
    g.write(i.operands[0], g.dtype(i), f"{c} + np.where({a} < {b}, {b} - {a}, {a} - {b})")


def dot_bytes(a, b, c, signed_a: bool, signed_b: bool):
    """dp4a: the dot product of four bytes each, plus c."""
    a, b = (np.ascontiguousarray(x) for x in (a, b))
    first = a.view("i1" if signed_a else "u1").reshape(*a.shape, 4).astype(np.int64)
    second = b.view("i1" if signed_b else "u1").reshape(*b.shape, 4).astype(np.int64)
    return ((first * second).sum(axis=-1) + c).astype(np.uint32)


@opcode("dp4a", "s32 u32")
def dp4a(g, i: Instruction) -> None:
    """Four-byte dot product with accumulation."""
    a, b, c = (g.source(i, n, "u32") for n in (1, 2, 3))
    signs = f"{i.modifiers[0] == 's32'}, {i.modifiers[1] == 's32'}"
    g.write(i.operands[0], "u4", f"integer.dot_bytes({a}, {b}, {c}, {signs})")


def dot_halves(a, b, c, signed_a: bool, signed_b: bool, high: bool):
    """dp2a: two 16-bit parts of a times two bytes (low or high pair) of b, plus c."""
    a, b = (np.ascontiguousarray(x) for x in (a, b))
    first = a.view("i2" if signed_a else "u2").reshape(*a.shape, 2).astype(np.int64)
    second = b.view("i1" if signed_b else "u1").reshape(*b.shape, 4).astype(np.int64)
    second = second[..., 2:] if high else second[..., :2]
    return ((first * second).sum(axis=-1) + c).astype(np.uint32)


@opcode("dp2a", "lo hi s32 u32")
def dp2a(g, i: Instruction) -> None:
    """Two-way dot product with accumulation."""
    a, b, c = (g.source(i, n, "u32") for n in (1, 2, 3))
    signs = f"{i.modifiers[1] == 's32'}, {i.modifiers[2] == 's32'}, {i.modifiers[0] == 'hi'}"
    g.write(i.operands[0], "u4", f"integer.dot_halves({a}, {b}, {c}, {signs})")


def add_carry(a, b, carry):
    """(a + b + carry, carry out) of unsigned arrays."""
    total = a + b
    out = total < a
    total2 = total + carry.astype(a.dtype)
    return total2, out | (total2 < total)


def with_carry(g, i: Instruction, a: str, b: str, carry_in: bool, subtract: bool) -> None:
    """The .cc forms: carry (or borrow) in and out through the register CC."""
    carry = g.read(CARRY, "?") if carry_in else g.code.constant(Imm(0), "?")
    if subtract:  # a - b - borrow = a + ~b + (1 - borrow)
        b, carry = f"~{b}", f"~{carry}"
    result = g.temporary(f"integer.add_carry({a}, {b}, {carry})")
    g.write(i.operands[0], g.dtype(i).replace("i", "u"), f"{result}[0]")
    if "cc" in i.modifiers:
        g.write(CARRY, "?", f"{'~' if subtract else ''}{result}[1]")


@opcode("addc subc", "cc u32 s32 u64 s64")
def addc(g, i: Instruction) -> None:
    """d = a ± b ± CC."""
    a, b = (g.source(i, n, i.type.replace("s", "u")) for n in (1, 2))
    with_carry(g, i, a, b, True, i.root == "subc")


@opcode("madc", "lo hi cc u32 s32 u64 s64")
def madc(g, i: Instruction) -> None:
    """d = part of a · b, + c + CC."""
    dtype, product = _product(g, i)
    part = g.temporary(f"({product}).view({dtype.replace('i', 'u')})")
    with_carry(g, i, part, g.source(i, 3, i.type.replace("s", "u")), True, False)


def _two(g, i: Instruction) -> str:
    return ", ".join(g.source(i, n) for n in (1, 2))
