"""cvt: between integers, floats and the narrow formats."""

from __future__ import annotations

import numpy as np

from .. import formats as fmt
from ..faults import PtxError
from ..ptx import TYPE_BYTES, Instruction
from .table import dtype_of, opcode

_FLOATS = {"f16", "bf16", "f32", "f64", "tf32"}
_PACKED = {"f16x2", "bf16x2", "e4m3x2", "e5m2x2"}
_ROUND = {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"}
_TYPES = " ".join(t for t in TYPE_BYTES if t not in ("pred", "b128", "b8", "b16", "b32", "b64"))


def decode(bits, kind: str):
    """Register contents of a float type to a NumPy float array."""
    if kind == "f16":
        return fmt.float_from_half(bits)
    if kind == "bf16":
        return fmt.float_from_bfloat(bits)
    return bits


def encode(x, kind: str, mode: str):
    """A NumPy float array to register contents of a float type."""
    if kind == "f16":
        return fmt.half_bits_from(x, mode)
    if kind == "bf16":
        return fmt.bfloat_bits(x, mode)
    if kind == "tf32":
        return fmt.tf32_round(x, mode)
    if kind == "f64":
        return x.astype(np.float64)
    if x.dtype == np.float64:
        return fmt.round_directed(x, np.zeros_like(x), mode)
    return x.astype(np.float32)


def float_to_float(bits, to: str, source: str, mode: str, flags: tuple = ()):
    """cvt between float formats; ``.rni`` and friends round to an integral value."""
    x = decode(bits, source)
    if "ftz" in flags and x.dtype == np.float32:
        x = fmt.flush(x)
    if mode.endswith("i"):
        x = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode](x)
        mode = "rn"
    if "relu" in flags:
        x = np.where(np.isnan(x), x, np.maximum(x, 0)).astype(x.dtype)
    if "sat" in flags:
        x = fmt.saturate(x)
    if "satfinite" in flags and to in ("f16", "bf16"):
        limit = 65504.0 if to == "f16" else 3.3895313892515355e38
        x = np.clip(x, x.dtype.type(-limit), x.dtype.type(limit))
    return encode(x, to, mode)


def float_to_integer(bits, dtype, source: str, mode: str, ftz: bool = False):
    """cvt from float to integer: rounded and saturated; see ``formats.float_to_int`` for NaN."""
    x = decode(bits, source)
    return fmt.float_to_int(fmt.flush(x) if ftz else x, dtype, mode)


def integer_to_float(x, to: str, mode: str):
    """cvt from integer to float."""
    if mode != "rn" and to == "f32":
        wide = x.astype(np.float64)
        lost = (x.astype(object) - wide.astype(object)).astype(np.float64) if x.itemsize == 8 else 0
        return fmt.round_directed(wide, np.zeros_like(wide) + lost, mode)
    if to in ("f16", "bf16"):
        return encode(x.astype(np.float64), to, mode)
    return x.astype(np.float32 if to == "f32" else np.float64)


def integer_to_integer(x, dtype, saturate: bool):
    """cvt between integers: truncation or sign/zero extension, optionally clamped."""
    if saturate:
        limits = np.iinfo(dtype)
        low = max(limits.min, np.iinfo(x.dtype).min)
        x = np.clip(x, low, min(limits.max, np.iinfo(x.dtype).max))
    return x.astype(dtype)


def pack_pair(high, low, kind: str, mode: str, relu: bool, satfinite: bool):
    """Two float32 values to a packed pair: the first operand becomes the upper part."""
    if relu:
        high, low = (np.where(np.isnan(x), x, np.maximum(x, 0)) for x in (high, low))
        high, low = high.astype(np.float32), low.astype(np.float32)
    if kind in ("e4m3x2", "e5m2x2"):
        high, low = (fmt.fp8_bits(x, kind[:4]).astype(np.uint16) for x in (high, low))
        return low | (high << np.uint16(8))
    flags = ("satfinite",) if satfinite else ()
    high, low = (float_to_float(x, kind[:-2], "f32", mode, flags) for x in (high, low))
    return fmt.join_pair(low, high)


def fp8_from_halves(bits, kind: str, relu: bool):
    """f16x2 to a pair of fp8."""
    pair = fmt.float_from_half(fmt.split_pair(bits))
    return pack_pair(pair[..., 1], pair[..., 0], kind, "rn", relu, True)


def halves_from_fp8(bits, kind: str):
    """A pair of fp8 to f16x2 (exact)."""
    bits = bits.astype(np.uint16)
    low = fmt.float_from_fp8((bits & np.uint16(0xFF)).astype(np.uint8), kind)
    high = fmt.float_from_fp8((bits >> np.uint16(8)).astype(np.uint8), kind)
    return fmt.join_pair(fmt.half_bits(low), fmt.half_bits(high))


@opcode("cvt", f"{' '.join(sorted(_ROUND))} ftz sat satfinite relu {_TYPES}")
def cvt(g, i: Instruction) -> None:
    """d = a converted from the last type to the one before it."""
    to, source = i.modifiers[-2], i.modifiers[-1]
    mode = next((m for m in i.modifiers if m in _ROUND), "rn")
    flags = tuple(m for m in i.modifiers if m in ("ftz", "sat", "satfinite", "relu"))
    if to in _PACKED:
        g.write(i.operands[0], dtype_of(to, i), _packed(g, i, to, source, mode, flags))
        return
    value = g.source(i, 1)
    dtype = dtype_of(to, i)
    if to in _FLOATS and source in _FLOATS:
        if (to, source) == ("f64", "f32") and not flags:
            call = f"{value}.astype(f8)"
        elif source == "f16" and to == "f32" and not flags:
            call = f"fmt.float_from_half({value})"
        else:
            call = f"conversion.float_to_float({value}, {to!r}, {source!r}, {mode!r}, {flags!r})"
    elif source in _FLOATS:
        call = (
            f"conversion.float_to_integer({value}, {dtype}, {source!r}, {mode!r}, {'ftz' in flags})"
        )
    elif to in _FLOATS:
        call = f"conversion.integer_to_float({value}, {to!r}, {mode!r})"
    elif "sat" in flags:
        call = f"conversion.integer_to_integer({value}, {dtype}, True)"
    else:
        call = f"{value}.astype({dtype})"
    g.write(i.operands[0], dtype, call)


def _packed(g, i: Instruction, to: str, source: str, mode: str, flags: tuple) -> str:
    if source == "f32":
        high, low = g.source(i, 1), g.source(i, 2)
        extra = f"{'relu' in flags}, {'satfinite' in flags}"
        return f"conversion.pack_pair({high}, {low}, {to!r}, {mode!r}, {extra})"
    if source == "f16x2" and to in ("e4m3x2", "e5m2x2"):
        return f"conversion.fp8_from_halves({g.source(i, 1)}, {to!r}, {'relu' in flags})"
    if to == "f16x2" and source in ("e4m3x2", "e5m2x2"):
        return f"conversion.halves_from_fp8({g.source(i, 1)}, {source[:4]!r})"
    raise PtxError(f"PTX line {i.ptx_line}: this conversion is not simulated: {i.text}")
