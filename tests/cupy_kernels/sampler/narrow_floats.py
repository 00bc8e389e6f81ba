"""Half, bfloat16, fp8 and tf32: arithmetic that rounds to few bits, and conversions."""

import numpy as np

from . import exact
from .case import sample
from .exact import BF16, E4M3, E5M2, F16, TF32, converted, decoded, rounded
from .operands import floats, halves

N = 128


def _columns(*columns):
    return np.stack(columns, 1)


def _smaller(x, y):
    """Index arrays are codes' values: pick x where it is the minimum; −0 is below +0, NaN loses."""
    return np.isnan(y) | (x < y) | ((x == y) & np.signbit(x))


def _arithmetic(a, b, c, target):
    """Sum, difference, product and fused product-sum of codes, rounded to `target`."""
    x, y, z = (decoded(v.view(np.uint16), target) for v in (a, b, c))
    pairs = [(exact.add, (x, y)), (exact.add, (x, -y)), (exact.multiply, (x, y))]
    return [rounded(f, target, *v) for f, v in [*pairs, (exact.fma, (x, y, z))]]


def _extremes(a, b, target):
    """Minimum and maximum of codes."""
    x, y = (decoded(v.view(np.uint16), target) for v in (a, b))
    return np.where(_smaller(x, y), a, b), np.where(_smaller(-x, -y), a, b)


def _negative_magnitude(codes):
    return (codes.view(np.uint16) | 0x8000).view(codes.dtype)


def _bfloats(rng, n):
    """bfloat16 codes: the upper halves of floats of all kinds."""
    return rng.permutation((floats(rng, n).view(np.uint32) >> 16).astype(np.uint16))


def _saturated(values):
    """Clamp to [0, 1]; NaN becomes 0."""
    clamped = np.where(np.isnan(values), 0, values.clip(0, 1)).astype(values.dtype)
    return np.where(clamped == 0, np.zeros_like(clamped), clamped)


@sample(grid=4)
def half_arithmetic(rng):
    a, b, c = (halves(rng, N) for _ in range(3))
    results = [*_arithmetic(a, b, c, F16), *_extremes(a, b, F16), _negative_magnitude(a)]
    expected = _columns(*results, _saturated(results[0]))
    return {"a": a, "b": b, "c": c, "out": np.zeros((N, 8), np.float16)}, {"out": expected}


@sample(grid=2)
def half2_arithmetic(rng):
    a, b, c = (halves(rng, N) for _ in range(3))
    c[::5] = a[::5]
    results = _arithmetic(a, b, c, F16)
    truths = [x.astype(np.float16) for x in (a == c, a > b)]
    swapped = a.reshape(-1, 2)[:, ::-1].ravel()
    with np.errstate(invalid="ignore"):
        relu = np.where(results[3] < 0, np.float16(0), results[3])
    relu = np.where(relu == 0, np.float16(0), relu)
    columns = [*results, _extremes(a, b, F16)[1], *truths, swapped, relu]
    expected = np.stack([x.reshape(-1, 2) for x in columns], 1)
    return {"a": a, "b": b, "c": c, "out": np.zeros((N // 2, 9, 2), np.float16)}, {"out": expected}


@sample(grid=4, formats={"out": BF16})
def bfloat16_arithmetic(rng):
    a, b, c = (_bfloats(rng, N) for _ in range(3))
    results = [*_arithmetic(a, b, c, BF16), *_extremes(a, b, BF16), _negative_magnitude(a)]
    out = np.zeros((N, 7), np.uint16)
    return {"a": a, "b": b, "c": c, "out": out}, {"out": _columns(*results)}


@sample(grid=2, formats={"out": BF16})
def bfloat162_arithmetic(rng):
    a, b, c = (_bfloats(rng, N) for _ in range(3))
    greater = np.where(decoded(a, BF16) > decoded(b, BF16), 0x3F80, 0).astype(np.uint16)
    columns = [*_arithmetic(a, b, c, BF16), _extremes(a, b, BF16)[1], greater]
    expected = np.stack([x.reshape(-1, 2) for x in columns], 1)
    return {"a": a, "b": b, "c": c, "out": np.zeros((N // 2, 6, 2), np.uint16)}, {"out": expected}


@sample(grid=4)
def half_conversions(rng):
    a, h = floats(rng, N), halves(rng, N)
    a[32:64] = np.ldexp(rng.uniform(1, 2, 32), rng.integers(-27, 17, 32)).astype(np.float32)
    a[-8:] = [65519.99, 65520, -65536, 2**-24, 2**-25, 2**-25 * 1.01, 6.1e-5, 1 + 2**-11]
    modes = [converted(a, F16, mode) for mode in ("rn", "rz", "ru", "rd")]
    held = np.where(np.isnan(h), 0, h.astype(np.float64).clip(-(2.0**31), 2.0**31 - 1))
    counted = converted(np.arange(N) * 257 - 8192, F16).view(np.uint16)
    expected = {
        "narrow": _columns(*modes, modes[0], converted(-a, F16)),
        "wide": h.astype(np.float32),
        "whole": _columns(np.rint(held), np.trunc(held), counted),
    }
    outputs = {"narrow": np.zeros((N, 6), np.float16), "wide": np.zeros(N, np.float32)}
    return {"a": a, "h": h, **outputs, "whole": np.zeros((N, 3), np.int32)}, expected


@sample(grid=4, formats={"narrow": BF16})
def bfloat16_conversions(rng):
    a = floats(rng, N)
    a[-3:] = np.array([0x3F808000, 0x3F818000, 0x7F7FFFFF], np.uint32).view(np.float32)
    modes = [converted(a, BF16, mode) for mode in ("rn", "rz", "ru", "rd")]
    expected = {
        "narrow": _columns(*modes, modes[0], converted(-a, BF16)),
        "wide": decoded(modes[1], BF16).astype(np.float32),
    }
    outputs = {"narrow": np.zeros((N, 6), np.uint16), "wide": np.zeros(N, np.float32)}
    return {"a": a, **outputs}, expected


# The PTX ISA bounds ex2.approx.f16 by 2^-9.9 and tanh.approx.f16 by 2^-10.987: one ulp either way.
@sample(grid=4, ulps={"out": 2})
def half_functions(rng):
    pairs = rng.uniform(-6, 6, (N, 2)).astype(np.float16)
    wide = pairs.astype(np.float64)
    alone = np.stack([np.exp2(wide[:, 0]), np.zeros(N)], 1)
    expected = np.stack([np.exp2(wide), np.tanh(wide), alone], 1)
    return {"pairs": pairs, "out": np.zeros((N, 3, 2), np.float16)}, {"out": expected}


@sample(grid=8)
def fp8_decode(rng):
    code = np.arange(256, dtype=np.uint8)
    expected = {name: decoded(code, f) for name, f in (("e4m3", E4M3), ("e5m2", E5M2))}
    outputs = {name: np.zeros(256, np.float16) for name in expected}
    return {"code": code, **outputs}, expected


@sample(grid=4)
def fp8_decode_pairs(rng):
    codes = np.stack([np.arange(N), 255 - np.arange(N)], 1).astype(np.uint8)
    expected = {name: decoded(codes, f) for name, f in (("e4m3", E4M3), ("e5m2", E5M2))}
    outputs = {name: np.zeros((N, 2), np.float16) for name in expected}
    return {"codes": codes, **outputs}, expected


def _fp8_sweep(rng):
    """Every code's value, the midpoints between neighbours and a hair to either side, corners."""
    values = []
    for f in (E4M3, E5M2):
        finite = np.array([f.decode(c) for c in range(f.largest + 1)])
        middle = (finite[1:] + finite[:-1]) / 2
        values += [finite, middle, middle * (1 + 2**-20), middle * (1 - 2**-20)]
    corners = [448, 448.001, 463.99, 464, 464.01, 480, 57344, 61439, 61440, 65536, 1e30, np.inf]
    values = np.concatenate([*values, corners, [2**-10, 2**-10 * 1.001, 2**-17, 1e-40, np.nan]])
    values = np.concatenate([values, -values]).astype(np.float32)
    fill = rng.standard_normal(-len(values) % 256) * 30
    return np.concatenate([values, fill.astype(np.float32)])


# e5m2 has three NaN codes a sign; the header's emulation and the instruction agree on 0x7f.
@sample(grid=8, block=256, formats={"e4m3": E4M3, "e5m2": E5M2})
def fp8_encode(rng):
    a = np.resize(_fp8_sweep(rng), 2048)
    formats = {"e4m3": E4M3, "e5m2": E5M2}
    expected = {name: converted(a, f, saturate=True) for name, f in formats.items()}
    return {"a": a, **{name: np.zeros(2048, np.uint8) for name in expected}}, expected


@sample(grid=4, block=256, formats={"e4m3": E4M3, "e5m2": E5M2})
def fp8_encode_pairs(rng):
    a = np.resize(_fp8_sweep(rng), (1024, 2))
    with np.errstate(over="ignore"):
        packed = np.resize(_fp8_sweep(rng), (1024, 2)).astype(np.float16)
    both = np.stack([a, packed.astype(np.float32)], 1)
    formats = {"e4m3": E4M3, "e5m2": E5M2}
    expected = {name: converted(both, f, saturate=True) for name, f in formats.items()}
    outputs = {name: np.zeros((1024, 2, 2), np.uint8) for name in formats}
    return {"a": a, "halves": packed, **outputs}, expected


@sample(grid=4)
def tf32_convert(rng):
    a = floats(rng, N)
    ties = np.array([0x3F801000, 0x3F803000, 0x3F800FFF, 0xBF801000, 0x3F801001], np.uint32)
    a[30:35] = ties.view(np.float32)
    codes = [converted(a, TF32, mode).astype(np.uint32) << 13 for mode in ("rna", "rn")]
    expected = np.stack(codes, 1).view(np.float32)
    return {"a": a, "out": np.zeros((N, 2), np.float32)}, {"out": expected}
