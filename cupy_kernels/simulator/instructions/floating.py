"""Floating-point arithmetic: f32, f64, and the halves f16, bf16 and their packed pairs.

f32 results are exact to the named rounding (fma by way of float64); the ``.approx`` functions
give NumPy's value, which the hardware meets to a few units in the last place.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .. import formats as fmt
from ..faults import PtxError
from ..ptx import Instruction
from .table import HALVES, opcode

_DIRECTED = {"rz", "rm", "rp"}
_HALVES = set(HALVES.split())


def rounding(i: Instruction) -> str:
    """The directed rounding mode of an instruction, or ``rn``."""
    return next((m for m in i.modifiers if m in _DIRECTED), "rn")


def flushed(i: Instruction, template: str) -> str:
    """Wrap an f32 expression template for ``.ftz`` and ``.sat``."""
    if "ftz" in i.modifiers and i.type == "f32":
        template = f"fmt.flush({template.replace('{}', 'fmt.flush({})')})"
    if "sat" in i.modifiers:
        template = f"fmt.saturate({template})"
    return template


def unpack_half(bits, kind: str, wide):
    """Register bits of f16/bf16 (or a pair) as floats; pairs gain a last axis of 2."""
    if kind.endswith("x2"):
        bits = fmt.split_pair(bits)
    table = fmt.HALF_TO_FLOAT if kind.startswith("f16") else fmt.BFLOAT_TO_FLOAT
    return table.take(bits).astype(wide, copy=False)


def pack_half(values, kind: str):
    """Floats to register bits of f16/bf16 (or a pair)."""
    bits = fmt.half_bits(values) if kind.startswith("f16") else fmt.bfloat_bits(values)
    return fmt.join_last(bits) if kind.endswith("x2") else bits


def half_binary(function, a, b, kind: str, relu: bool = False, sat: bool = False):
    """A two-operand operation on halves: exact in float32, rounded once."""
    wide = np.float64 if kind.startswith("bf16") else np.float32
    result = function(unpack_half(a, kind, wide), unpack_half(b, kind, wide))
    return _finish_half(result, kind, relu, sat)


def half_fma(a, b, c, kind: str, relu: bool = False, sat: bool = False):
    """a·b + c on halves: exact in float64, rounded once."""
    a, b, c = (unpack_half(x, kind, np.float64) for x in (a, b, c))
    return _finish_half(a * b + c, kind, relu, sat)


def _finish_half(result, kind: str, relu: bool, sat: bool):
    if relu:
        result = np.where(np.isnan(result), result, np.maximum(result, 0))
    if sat:
        result = fmt.saturate(result)
    return pack_half(result, kind)


def arithmetic(g, i: Instruction, sign: str) -> None:
    """add, sub or mul of a floating type."""
    dtype, a, b = g.dtype(i), g.source(i, 1), g.source(i, 2)
    name = {"+": "add", "-": "subtract", "*": "multiply"}[sign]
    if i.type in _HALVES:
        call = f"floating.half_binary(np.{name}, {a}, {b}, {i.type!r}, sat={'sat' in i.modifiers})"
        g.write(i.operands[0], dtype, call)
        return
    mode = rounding(i)
    if mode == "rn":
        g.write(i.operands[0], dtype, flushed(i, f"({{}} {sign} {{}})").format(a, b))
        return
    _only_single(i)
    if sign == "-":
        b = f"-{b}"
    kind = "mul" if sign == "*" else "add"
    directed = flushed(i, f"fmt.{kind}_directed({{}}, {{}}, {mode!r})")
    g.write(i.operands[0], dtype, directed.format(a, b))


@opcode("fma", f"rn rz rm rp ftz sat relu f32 f64 {HALVES}")
def fma(g, i: Instruction) -> None:
    """d = a·b + c with one rounding."""
    dtype = g.dtype(i)
    if i.type in _HALVES:
        a, b, c = (g.source(i, n) for n in (1, 2, 3))
        flags = f"{'relu' in i.modifiers}, {'sat' in i.modifiers}"
        g.write(i.operands[0], dtype, f"floating.half_fma({a}, {b}, {c}, {i.type!r}, {flags})")
    elif i.type == "f64":
        a, b, c = (g.source(i, n) for n in (1, 2, 3))
        g.write(i.operands[0], dtype, f"floating.fma64({a}, {b}, {c})")
    elif rounding(i) != "rn":
        a, b, c = (g.source(i, n) for n in (1, 2, 3))
        template = flushed(i, f"fmt.fma_directed({{}}, {{}}, {{}}, {rounding(i)!r})")
        g.write(i.operands[0], dtype, template.format(a, b, c))
    elif "ftz" in i.modifiers or "sat" in i.modifiers:
        template = flushed(i, "fmt.fma32({}, {}, {})").replace("fmt.flush({})", "fmt.widened({})")
        if "ftz" not in i.modifiers:
            template = template.replace("{}", "{}.astype(f8)")
        g.write(i.operands[0], dtype, template.format(*(g.source(i, n) for n in (1, 2, 3))))
    else:
        a, b, c = (g.double(o) for o in i.operands[1:])
        g.write(i.operands[0], dtype, f"fmt.fma32({a}, {b}, {c})")


def fma64(a, b, c):
    """float64 fma: the product's rounding error is recovered by Dekker's splitting.

    Where the splitting could over- or underflow, the few lanes are done in rational arithmetic.
    """
    product = a * b
    split = 134217729.0
    high_a = a * split - (a * split - a)
    high_b = b * split - (b * split - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    total = product + c
    part = total - product
    lost = (product - (total - part)) + (c - part) + error
    result = np.where(np.isfinite(total) & (lost != 0), total + lost, total)
    size = np.abs(product)
    hard = (a != 0) & (b != 0) & ((size < 1e-280) | ~(size < 1e280) | ~np.isfinite(lost))
    hard = hard & np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    if hard.any():
        a, b, c, hard, result = (np.array(x) for x in np.broadcast_arrays(a, b, c, hard, result))
        for at in zip(*np.nonzero(hard), strict=True):
            result[at] = rational_fma(float(a[at]), float(b[at]), float(c[at]))
    return result


def rational_fma(a: float, b: float, c: float) -> float:
    """a·b + c of finite floats, rounded once."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        value = float(exact)
    except OverflowError:
        value = float("inf")
    return -abs(value) if exact < 0 else value


def divide(g, i: Instruction) -> None:
    """div of f32 or f64."""
    mode = rounding(i)
    if mode == "rn":
        g.write_typed(i, flushed(i, "({} / {})"), 1, 2)
        return
    _only_single(i)
    g.write_typed(i, flushed(i, f"fmt.div_directed({{}}, {{}}, {mode!r})"), 1, 2)


def extremum(g, i: Instruction) -> None:
    """min or max of a floating type."""
    if "xorsign" in i.modifiers:
        raise PtxError(f"PTX line {i.ptx_line}: .xorsign is not simulated: {i.text}")
    name = f"{i.root}imum"
    function = f"floating.{name}_or_nan" if "NaN" in i.modifiers else f"fmt.{name}"
    if i.type in _HALVES:
        a, b = g.source(i, 1), g.source(i, 2)
        call = f"floating.half_binary({function}, {a}, {b}, {i.type!r})"
        g.write(i.operands[0], g.dtype(i), call)
    else:
        g.write_typed(i, flushed(i, f"{function}({{}}, {{}})"), 1, 2)


def minimum_or_nan(a, b):
    """min.NaN."""
    return fmt.minimum(a, b, np.minimum)


def maximum_or_nan(a, b):
    """max.NaN."""
    return fmt.maximum(a, b, np.maximum)


def _unary(root: str, expression: str, modifiers: str):
    @opcode(root, modifiers)
    def emit(g, i: Instruction) -> None:
        mode = rounding(i)
        if mode != "rn":
            _only_single(i)
            first = "f4(1), " if root == "rcp" else ""
            call = f"fmt.{'div' if root == 'rcp' else 'sqrt'}_directed({first}{{}}, {mode!r})"
            g.write_typed(i, flushed(i, call), 1)
        elif i.type in _HALVES:
            call = f"floating.half_unary({expression}, {g.source(i, 1)}, {i.type!r})"
            g.write(i.operands[0], g.dtype(i), call)
        else:
            g.write_typed(i, flushed(i, f"{expression}({{}})"), 1)

    emit.__doc__ = f"d = {root}(a)."
    return emit


def half_unary(function, a, kind: str):
    """A one-operand operation on halves, computed in float32."""
    return pack_half(function(unpack_half(a, kind, np.float32)), kind)


def reciprocal(x):
    """1/x in x's own format."""
    return x.dtype.type(1) / x


def reciprocal_sqrt(x):
    """1/sqrt(x), rounded once to x's own format where that is float32."""
    return (1.0 / np.sqrt(x.astype(np.float64))).astype(x.dtype)


_ROUND = "rn rz rm rp ftz approx f32 f64"
_unary("rcp", "floating.reciprocal", _ROUND)
_unary("sqrt", "np.sqrt", _ROUND)
_unary("rsqrt", "floating.reciprocal_sqrt", "approx ftz f32 f64")
_unary("ex2", "np.exp2", f"approx ftz f32 {HALVES}")
_unary("lg2", "np.log2", "approx ftz f32")
_unary("sin", "np.sin", "approx ftz f32")
_unary("cos", "np.cos", "approx ftz f32")
_unary("tanh", "np.tanh", f"approx f32 {HALVES}")


@opcode("copysign", "f32 f64")
def copysign(g, i: Instruction) -> None:
    """d = |b| with the sign of a."""
    g.write_typed(i, "np.copysign({}, {})", 2, 1)


@opcode("testp", "finite infinite number notanumber normal subnormal f32 f64")
def testp(g, i: Instruction) -> None:
    """Predicate: what kind of number a is."""
    a = g.source(i, 1)
    tests = {
        "finite": f"np.isfinite({a})",
        "infinite": f"np.isinf({a})",
        "number": f"~np.isnan({a})",
        "notanumber": f"np.isnan({a})",
        "normal": f"(np.isfinite({a}) & (np.abs({a}) >= np.finfo({a}.dtype).tiny))",
        "subnormal": f"(({a} != 0) & (np.abs({a}) < np.finfo({a}.dtype).tiny))",
    }
    g.write(i.operands[0], "?", tests[i.modifiers[0]])


def _only_single(i: Instruction) -> None:
    if i.type != "f32":
        raise PtxError(
            f"PTX line {i.ptx_line}: directed rounding is simulated for f32 only: {i.text}"
        )
