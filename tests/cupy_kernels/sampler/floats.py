"""float32 and float64: rounding, special values, conversions, and the functions of the SFU."""

import math

import numpy as np

from . import exact
from .case import sample
from .operands import floats, integers, long_integers, shuffled_floats

N = 128
MODES = ("rn", "rz", "ru", "rd")


def _columns(*columns):
    return np.stack(columns, 1)


def _quietly(function, *operands):
    """A NumPy function in float64, without its warnings."""
    with np.errstate(all="ignore"):
        return function(*(np.asarray(x, np.float64) for x in operands))


@sample(grid=4)
def float_rounding_modes(rng):
    a, b = floats(rng, N), shuffled_floats(rng, N)
    functions = [(exact.add, (a, b)), (exact.multiply, (a, b)), (exact.divide, (a, b))]
    functions.append((exact.square_root, (abs(a),)))
    expected = _columns(
        *(exact.rounded(f, exact.F32, *x, mode=m) for f, x in functions for m in MODES)
    )
    return {"a": a, "b": b, "out": np.zeros((N, 16), np.float32)}, {"out": expected}


@sample(grid=4)
def fma_exact(rng):
    a, b, c = floats(rng, N), shuffled_floats(rng, N), shuffled_floats(rng, N)
    # Near cancellation only the exact product tells; and ties that a sum in float64 would create.
    c[64:96] = -(a[64:96] * b[64:96])
    a[96:], b[96:] = np.float32(1 + 2**-12), np.float32(1 + 2**-12 - 2**-23)
    c[96:] = np.ldexp(np.float32(1), rng.integers(-60, 60, 32)).astype(np.float32)
    modes = [exact.rounded(exact.fma, exact.F32, a, b, c, mode=m) for m in (*MODES, "rn")]
    arguments = {"a": a, "b": b, "c": c, "out": np.zeros((N, 5), np.float32)}
    return arguments, {"out": _columns(*modes)}


def _minimum(x, y):
    """min of two numbers: −0 is below +0."""
    return np.where((x < y) | ((x == y) & np.signbit(x)), x, y)


@sample(grid=4)
def float_min_max(rng):
    a, b = floats(rng, N), shuffled_floats(rng, N)
    a[:6], b[:6] = [0.0, -0.0, np.nan, 1.0, np.nan, -0.0], [-0.0, 0.0, 2.0, np.nan, np.nan, -0.0]
    low, high = _minimum(a, b), -_minimum(-a, -b)
    numbers = [np.where(np.isnan(a), b, np.where(np.isnan(b), a, v)) for v in (low, high)]
    nan = np.isnan(a) | np.isnan(b)
    passing = [np.where(nan, np.float32(np.nan), v) for v in (low, high)]
    out = np.zeros((N, 4), np.float32)
    return {"a": a, "b": b, "out": out}, {"out": _columns(*numbers, *passing)}


@sample(grid=4)
def float_compare(rng):
    a, b = floats(rng, N), shuffled_floats(rng, N)
    b[::3] = a[::3]
    nan = np.isnan(a) | np.isnan(b)
    ordered = [a == b, (a != b) & ~nan, a < b, a <= b, a > b, a >= b]
    bits = [*ordered, *(x | nan for x in ordered), ~nan, nan]
    expected = sum(bit.astype(np.uint32) << k for k, bit in enumerate(bits))
    return {"a": a, "b": b, "out": np.zeros(N, np.uint32)}, {"out": expected}


def _to_integer(value, dtype, rounding, source_bits=32):
    """cvt: round to a whole number, hold it inside the type's range; NaN is 0, or the top bit."""
    info = np.iinfo(dtype)
    if math.isnan(value):
        return 1 << info.bits - 1 if max(info.bits, source_bits) == 64 else 0
    if math.isinf(value):
        return int(info.max if value > 0 else info.min)
    return min(max(rounding(value), int(info.min)), int(info.max))


@sample(grid=4)
def saturating_convert(rng):
    a = floats(rng, N)
    a[40:64] = rng.uniform(-300, 300, 24)
    a[28:40] = [0.5, 1.5, 2.5, -0.5, -1.5, 3e9, -3e9, 5e9, 9.3e18, -9.3e18, 1.9e19, 127.5]
    to = [(np.int32, r) for r in (round, math.trunc, math.ceil, math.floor)]
    to += [(np.uint32, round), (np.uint32, math.trunc), (np.int16, math.trunc)]
    to += [(np.uint16, math.trunc), (np.int8, round), (np.uint8, math.trunc)]
    wide = [(np.int64, math.trunc), (np.uint64, math.trunc), (np.int64, round)]

    def table(targets):
        return np.array([[_to_integer(x, *t) for t in targets] for x in a.tolist()], object)

    expected = {
        "out": (table(to) & 0xFFFFFFFF).astype(np.uint32).view(np.int32),
        "wide_out": (table(wide) & (2**64 - 1)).astype(np.uint64).view(np.int64),
    }
    outputs = {"out": np.zeros((N, 10), np.int32), "wide_out": np.zeros((N, 3), np.int64)}
    return {"a": a, **outputs}, expected


@sample(grid=4)
def narrowing_convert(rng):
    a = integers(rng, N)
    a[64:] = rng.integers(-70000, 70000, 64)
    f = rng.uniform(-3, 3, N).astype(np.float32)
    f[:8] = [0.5, 1.5, -0.5, 2.5, 1.0, 0.0, -2.5, 0.25]
    clipped = [a.clip(-128, 127), a.clip(0, 255), a.clip(0, 65535)]
    kept = [a.astype(np.int8), a.astype(np.uint8), a.astype(np.int16)]
    whole = np.trunc(f) + np.floor(f) * 2 + np.ceil(f) * 4 + np.rint(f) * 8
    expected = {
        "out": _columns(*kept, *clipped).astype(np.int32),
        "clamped": _columns(f.clip(0, 1), whole),
    }
    outputs = {"out": np.zeros((N, 6), np.int32), "clamped": np.zeros((N, 2), np.float32)}
    return {"a": a, "f": f, **outputs}, expected


@sample(grid=4)
def integer_to_float(rng):
    a, b = integers(rng, N), long_integers(rng, N)
    narrow = [exact.converted(a, exact.F32, mode) for mode in MODES]
    unsigned = [a.view(np.uint32), b, b.view(np.uint64), a.view(np.uint8)[::4]]
    narrow += [exact.converted(x, exact.F32) for x in unsigned]
    wide = [exact.converted(x, exact.F64) for x in (a, b, b.view(np.uint64))]
    expected = {"out": _columns(*narrow), "wide_out": _columns(*wide)}
    outputs = {"out": np.zeros((N, 8), np.float32), "wide_out": np.zeros((N, 3), np.float64)}
    return {"a": a, "b": b, **outputs}, expected


# Bounds of the PTX ISA. In ulps: ex2, rcp, rsqrt, sqrt, ex2 again, div; lg2 has 2^-22, relative or,
# near 1, absolute; sin and cos 2^-20.5 on [-pi, pi]; tanh 2^-11 of a value below 1.
@sample(
    grid=4,
    ulps={"relative": (2, 1, 2, 1, 2, 2), "absolute": (4, 0, 0, 0)},
    absolute={"absolute": (2**-22, 2**-20.5, 2**-20.5, 2**-11)},
)
def approximate_functions(rng):
    a = np.exp(rng.uniform(-30, 30, N)).astype(np.float32)
    angle = rng.uniform(-math.pi, math.pi, N).astype(np.float32)
    roots = [1 / a.astype(np.float64), _quietly(lambda x: x**-0.5, a), _quietly(np.sqrt, a)]
    powers = [np.exp2(angle.astype(np.float64)), np.exp2(-angle.astype(np.float64))]
    relative = [powers[0], *roots, powers[1], angle.astype(np.float64) / a]
    absolute = [_quietly(f, x) for f, x in ((np.log2, a), (np.sin, angle), (np.cos, angle))]
    absolute.append(_quietly(np.tanh, angle))
    expected = {"relative": _columns(*relative), "absolute": _columns(*absolute)}
    outputs = {"relative": np.zeros((N, 6), np.float32), "absolute": np.zeros((N, 4), np.float32)}
    return {"a": a, "angle": angle, **outputs}, expected


@sample(ulps={"out": (2, 4, 1, 2, 1, 0, 0, 0)})
def special_values(rng):
    a = np.zeros(32, np.float32)
    a[:5] = 0.0, -0.0, np.inf, -np.inf, np.nan
    a[5:10] = 1e-45, -1e-45, 1e-39, -1e-39, 2.0**-126
    a[10:16] = 1.0, -1.0, 128.0, -126.0, -160.0, 3e38
    a[16:] = rng.choice([2.0, 4.0, 0.25, 1e38, -4.0, 2.0**-127], 16)
    flushed = np.where(abs(a) < 2.0**-126, np.copysign(np.float32(0), a), a)
    columns = [
        _quietly(np.exp2, a),
        _quietly(np.log2, a),
        _quietly(np.divide, 1.0, a),
        _quietly(lambda x: 1 / np.sqrt(x), a),
        _quietly(np.divide, 1.0, flushed),
        _quietly(np.sqrt, a),
        -a.astype(np.float64),
        abs(a.astype(np.float64)),
    ]
    with np.errstate(over="ignore"):
        expected = _columns(*columns).astype(np.float32)
    tiny = np.abs(expected[:, 4]) < 2.0**-126
    expected[tiny, 4] = np.copysign(np.float32(0), expected[tiny, 4])
    return {"a": a, "out": np.zeros((32, 8), np.float32)}, {"out": expected}


def _flush(x):
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


@sample(grid=4)
def flush_to_zero(rng):
    a = (floats(rng, N).view(np.uint32) & np.uint32(0x80FFFFFF)).view(np.float32)
    b = (shuffled_floats(rng, N).view(np.uint32) & np.uint32(0x81FFFFFF)).view(np.float32)
    b[::4] = rng.standard_normal(32).astype(np.float32)
    a[::4] = rng.standard_normal(32).astype(np.float32)
    x, y = _flush(a), _flush(b)
    f32 = exact.F32
    plain = [exact.rounded(f, f32, a, b) for f in (exact.add, exact.multiply)]
    flushed = [
        _flush(exact.rounded(exact.add, f32, x, y)),
        _flush(exact.rounded(exact.multiply, f32, x, y)),
        _flush(exact.rounded(exact.fma, f32, x, y, x)),
        -_minimum(-x, -y),
    ]
    clamped = _flush(exact.rounded(exact.add, f32, x, -y)).clip(np.float32(0), np.float32(1))
    clamped[clamped == 0] = 0.0
    out = np.zeros((N, 7), np.float32)
    return {"a": a, "b": b, "out": out}, {"out": _columns(*flushed, *plain, clamped)}


def _doubles_to_integers(a):
    codes = [_to_integer(x, np.int32, math.trunc, source_bits=64) for x in a.tolist()]
    return (np.array(codes) & 0xFFFFFFFF).astype(np.uint32).view(np.int32).astype(np.float64)


@sample(grid=4)
def double_arithmetic(rng):
    a, b = (rng.standard_normal(N) * 10.0 ** rng.integers(-3, 6, N) for _ in range(2))
    a[:6], b[:6] = [np.inf, np.nan, 0.0, -0.0, 1e300, 5e-324], [1.0, 2.0, -3.0, 4.0, 1e300, 0.5]
    f64 = exact.F64
    results = [
        exact.rounded(exact.add, f64, a, b),
        exact.rounded(exact.multiply, f64, a, b),
        exact.rounded(exact.fma, f64, a, b, a),
        exact.rounded(exact.divide, f64, a, b),
        exact.rounded(exact.square_root, f64, abs(a)),
        np.where(np.isnan(a), b, _minimum(a, b)),
        np.where(np.isnan(a), b, -_minimum(-a, -b)),
        np.floor(a) + np.where(a < b, 1.0, 2.0),
        _doubles_to_integers(a),
        -abs(b),
    ]
    narrow = [exact.converted(a, exact.F32, mode) for mode in ("rn", "rz")]
    narrow.append(exact.converted(exact.rounded(exact.multiply, f64, a, b), exact.F32))
    expected = {"out": _columns(*results), "narrow": _columns(*narrow)}
    outputs = {"out": np.zeros((N, 10)), "narrow": np.zeros((N, 3), np.float32)}
    return {"a": a, "b": b, **outputs}, expected


# Bounds of the CUDA programming guide: 2 ulps for the exponentials, sin, cos, tanh and erf, 1 for
# the logarithms, 4 for pow, 2 for rsqrt; near a zero of a logarithm or a sine, absolutely.
@sample(grid=4, ulps={"out": 4}, absolute={"out": 2e-7})
def math_library(rng):
    a = rng.uniform(-8, 8, N).astype(np.float32)
    positive = np.exp(rng.uniform(-10, 10, N)).astype(np.float32)
    erf = np.array([math.erf(x) for x in a.tolist()])
    of_a = [_quietly(f, a) for f in (np.exp, np.exp2, np.sin, np.cos, np.tanh)]
    of_p = [_quietly(f, positive) for f in (np.log, np.log2)]
    powers = [_quietly(np.power, positive, 1.5), _quietly(np.power, positive, -0.5)]
    expected = [of_a[0], of_p[0], of_a[1], of_p[1], *of_a[2:], erf, *powers]
    arguments = {"a": a, "positive": positive, "out": np.zeros((N, 10), np.float32)}
    return arguments, {"out": _columns(*expected)}


@sample(grid=2, ulps={"out": 2})
def large_angles(rng):
    angle = (10.0 ** rng.uniform(0, 30, 64)).astype(np.float32) * rng.choice([-1, 1], 64)
    angle = angle.astype(np.float32)
    # math.sin reduces exactly, as sinf's slow path does.
    expected = [[math.sin(x), math.cos(x)] for x in angle.tolist()]
    return {"angle": angle, "out": np.zeros((64, 2), np.float32)}, {"out": np.array(expected)}


@sample(grid=4)
def float_classes(rng):
    a, b = floats(rng, N), shuffled_floats(rng, N)
    sign = np.signbit(a)
    classes = np.isnan(a) | np.isinf(a) << 1 | np.isfinite(a) << 2 | sign.astype(int) << 3
    # PTX names the sign's source first, C++ last.
    copied = _columns(np.copysign(a, b), np.copysign(b, a))
    outputs = {"out": np.zeros(N, np.int32), "copied": np.zeros((N, 2), np.float32)}
    return {"a": a, "b": b, **outputs}, {"out": classes, "copied": copied}
