"""Number formats: half, bfloat16, fp8 and tf32 beside float32, and directed rounding.

Narrow floats travel in registers as raw bits. Arithmetic on them is done in a wider format that
holds every intermediate exactly and is rounded once at the end.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

F16, F32, F64 = np.float16, np.float32, np.float64
U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
E4M3_MAX, E5M2_MAX = 448.0, 57344.0

HALF_TO_FLOAT = np.arange(65536, dtype=U16).view(F16).astype(F32)
BFLOAT_TO_FLOAT = (np.arange(65536, dtype=U32) << 16).view(F32)
E4M3_TO_FLOAT = np.arange(256, dtype=U8).view(ml_dtypes.float8_e4m3fn).astype(F32)
E5M2_TO_FLOAT = np.arange(256, dtype=U8).view(ml_dtypes.float8_e5m2).astype(F32)


_TIE_MASKS: dict[tuple, tuple] = {}


def _tie_masks(shape: tuple) -> tuple:
    """The float64 bits that a float32 lacks, and their value halfway between two float32.

    Full-size arrays, since NumPy is slower where it has to broadcast a scalar.
    """
    if len(_TIE_MASKS) > 64:
        _TIE_MASKS.clear()
    masks = np.full(shape, 0x1FFFFFFF, np.int64), np.full(shape, 0x10000000, np.int64)
    return _TIE_MASKS.setdefault(shape, masks)


def fma32(a, b, c):
    """float32 ``a·b + c`` of operands given as float64, rounded once.

    The product is exact. The float64 sum is rounded, so a second rounding to float32 could go
    wrong where the sum lies exactly between two float32 numbers. Such a sum has three zero bytes
    at its low end: in short arrays a search of the bytes rules it out at little cost.
    """
    product = a * b
    total = product + c
    if total.size > 1024 or b"\0\0\0" in total.tobytes():
        total = _settle_ties(product, c, total)
    return total.astype(F32)


def _settle_ties(product, c, total):
    missing, half = _TIE_MASKS.get(total.shape) or _tie_masks(total.shape)
    if not np.count_nonzero((total.view(np.int64) & missing) == half):
        return total
    part = total - product
    error = (product - (total - part)) + (c - part)
    return round_to_odd(total, error) if np.count_nonzero(error) else total


def round_to_odd(total, error):
    """``total + error`` as a float64 whose last bit says that something was lost."""
    bits = total.view(np.int64)
    toward_zero = np.signbit(error) != np.signbit(total)
    inexact = (error != 0) & np.isfinite(error) & (bits & 1 == 0)
    return (bits + np.where(inexact, np.where(toward_zero, -1, 1), 0)).view(F64)


def flush(x):
    """``.ftz``: subnormal float32 values become zeros of the same sign."""
    return np.where(np.abs(x) < np.finfo(F32).tiny, np.copysign(F32(0), x), x)


def widened(x):
    """A flushed float32 as float64."""
    return flush(x).astype(F64)


def saturate(x):
    """``.sat``: clamp to [0, 1]; NaN and -0 become +0."""
    return np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))


def minimum(a, b, function=np.fmin):
    """The smaller of two floats; the other one for a NaN (np.minimum: NaN); -0 is below +0."""
    result = function(a, b)
    if np.count_nonzero(result) < result.size:
        zeros = (a == 0) & (b == 0)
        result = np.where(zeros & np.signbit(a), a, np.where(zeros, b, result))
    return result


def maximum(a, b, function=np.fmax):
    """The larger of two floats; the other one for a NaN (np.maximum: NaN); +0 is above -0."""
    result = function(a, b)
    if np.count_nonzero(result) < result.size:
        zeros = (a == 0) & (b == 0)
        result = np.where(zeros & np.signbit(a), b, np.where(zeros, a, result))
    return result


def step_toward(near, above, below, mode: str):
    """``near`` corrected for a directed mode; ``above``: it exceeds the true value, ``below``."""
    kind = near.dtype.type
    down, up = np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf))
    if mode == "rz":
        negative = np.signbit(near)
        above, below = above & ~negative, below & negative
    elif mode == "rm":
        below = np.zeros_like(below)
    else:
        above = np.zeros_like(above)
    return np.where(above, down, np.where(below, up, near))


def round_directed(total, error, mode: str, target=F32):
    """Round ``total + error`` (float64 and what its own rounding lost) to a narrower float.

    ``mode`` is rn, rz, rm (down) or rp (up).
    """
    near = total.astype(target)
    if mode == "rn":
        return near
    excess = np.where(np.isinf(near) & np.isinf(total), 0, near.astype(F64) - total)
    above = (excess > 0) | ((excess == 0) & (error < 0))
    below = (excess < 0) | ((excess == 0) & (error > 0))
    return step_toward(near, above, below, mode)


def add_directed(a, b, mode: str):
    """float32 (or float64 operand) sum under a rounding mode, exact by Knuth's two-sum."""
    a, b = a.astype(F64), b.astype(F64)
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    result = round_directed(total, np.where(np.isfinite(total), error, 0), mode)
    if mode == "rm":  # an exact cancellation is -0 when rounding down
        cancelled = (total == 0) & ~((a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b))
        result = np.where(cancelled, F32(-0.0), result)
    return result


def mul_directed(a, b, mode: str):
    """float32 product under a rounding mode; the float64 product is exact."""
    product = np.multiply(a, b, dtype=F64)
    return round_directed(product, np.zeros_like(product), mode)


def fma_directed(a, b, c, mode: str):
    """float32 ``a·b + c`` under a rounding mode."""
    return add_directed(np.multiply(a, b, dtype=F64), c, mode)


def div_directed(a, b, mode: str):
    """float32 quotient under a rounding mode: the sign of the remainder decides."""
    near = a / b
    rest = a.astype(F64) - np.multiply(near, b, dtype=F64)
    rest = np.where(np.isfinite(near) & np.isfinite(b), rest, 0) * np.where(np.signbit(b), -1, 1)
    overflow = np.isinf(near) & np.isfinite(a) & (b != 0)
    rest = np.where(overflow, np.where(near > 0, -1, 1), rest)
    return step_toward(near, rest < 0, rest > 0, mode)


def sqrt_directed(a, mode: str):
    """float32 square root under a rounding mode."""
    near = np.sqrt(a)
    rest = np.where(np.isfinite(near), a.astype(F64) - np.multiply(near, near, dtype=F64), 0)
    return step_toward(near, rest < 0, rest > 0, mode)


def to_odd32(x):
    """float64 to float32 by rounding to odd: a later rounding to fewer bits is then correct."""
    near = x.astype(F32)
    back = near.astype(F64)
    bits = near.view(U32)
    bits = bits - (np.abs(back) > np.abs(x)).astype(U32)
    inexact = (back != x) & ~np.isnan(x)
    return (bits | inexact.astype(U32)).view(F32)


def half_bits(x):
    """Any float array to float16 (nearest even), as uint16 bits."""
    return x.astype(F16).view(U16)


def bfloat_bits(x, mode: str = "rn"):
    """A float array to bfloat16 as uint16 bits under a rounding mode."""
    x = np.ascontiguousarray(to_odd32(x) if x.dtype == F64 else x)
    bits = x.view(U32)
    if mode == "rn":
        rounded = (bits + U32(0x7FFF) + ((bits >> U32(16)) & U32(1))) >> U32(16)
    else:
        away = {"rz": 0, "rp": ~np.signbit(x), "rm": np.signbit(x)}[mode]
        rest = (bits & U32(0xFFFF)) != 0
        rounded = (bits >> U32(16)) + (rest & away & np.isfinite(x)).astype(U32)
    return np.where(np.isnan(x), U32(0x7FFF), rounded).astype(U16)


def float_from_half(bits):
    """uint16 float16 bits to float32."""
    return HALF_TO_FLOAT.take(bits)


def float_from_bfloat(bits):
    """uint16 bfloat16 bits to float32."""
    return BFLOAT_TO_FLOAT.take(bits)


def half_bits_from(x, mode: str):
    """float32 or float64 to float16 bits under a rounding mode; NaN is 0x7FFF."""
    wide = x.astype(F64)
    rounded = round_directed(wide, np.zeros_like(wide), mode, F16).view(U16)
    return np.where(np.isnan(x), U16(0x7FFF), rounded)


def tf32_round(x, mode: str = "rna"):
    """float32 to tf32 (10 mantissa bits kept in a float32): ties away (rna) or to even (rn)."""
    bits = x.view(U32)
    if mode == "rna":
        rounded = (bits + U32(0x1000)) & U32(0xFFFFE000)
    elif mode == "rz":
        rounded = bits & U32(0xFFFFE000)
    else:
        rounded = (bits + U32(0xFFF) + ((bits >> U32(13)) & U32(1))) & U32(0xFFFFE000)
    return np.where(np.isfinite(x), rounded, bits).view(F32)


def tf32_truncate(x):
    """What the tensor core reads of a float32 operand: the low 13 mantissa bits are ignored."""
    return (np.ascontiguousarray(x).view(U32) & U32(0xFFFFE000)).view(F32)


def fp8_bits(x, kind: str):
    """float32 to e4m3 or e5m2 with ``.satfinite`` (nearest even), as uint8 bits; NaN is 0x7F."""
    limit, dtype = (
        (E4M3_MAX, ml_dtypes.float8_e4m3fn) if kind == "e4m3" else (E5M2_MAX, ml_dtypes.float8_e5m2)
    )
    clipped = np.clip(x.astype(F32), F32(-limit), F32(limit))
    bits = clipped.astype(dtype).view(U8)
    return np.where(np.isnan(x), U8(0x7F), bits)


def float_from_fp8(bits, kind: str):
    """uint8 e4m3 or e5m2 bits to float32."""
    return (E4M3_TO_FLOAT if kind == "e4m3" else E5M2_TO_FLOAT).take(bits)


def split_pair(bits):
    """A packed 32-bit register to its two 16-bit halves, shape (..., 2), low half first."""
    bits = np.ascontiguousarray(bits)
    return bits.view(U16).reshape(*bits.shape, 2)


def join_pair(low, high):
    """Two uint16 arrays to one packed uint32 register."""
    return low.astype(U32) | (high.astype(U32) << U32(16))


def join_last(pairs):
    """Shape (..., 2) uint16 to packed uint32 of shape (...)."""
    return np.ascontiguousarray(pairs).view(U32)[..., 0]


def float_to_int(x, dtype, mode: str):
    """Float to integer: round, saturate to the target's range.

    NaN becomes 0, but the target's top bit where source or target has 64 bits (PTX ISA 9.0, cvt).
    """
    rounded = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode](x)
    limits, bits = np.iinfo(dtype), 8 * np.dtype(dtype).itemsize
    wide = np.where(np.isnan(rounded), 0, rounded).astype(F64)
    low, high = (np.array(limit, dtype) for limit in (limits.min, limits.max))
    above, below = wide >= 2.0 ** (bits - (limits.min < 0)), wide < float(limits.min)
    cast = np.where(above | below, 0, wide).astype(dtype)
    result = np.where(above, high, np.where(below, low, cast))
    if bits == 64 or x.dtype == F64:
        top_bit = np.array(1 << (bits - 1), f"u{bits // 8}").view(dtype)
        result = np.where(np.isnan(x), top_bit, result)
    return result
