"""Conversions and roundings against rational arithmetic and against ml_dtypes."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from cupy_kernels.simulator import formats as fmt

F32 = np.float32


def tricky(rng, n=400):
    x = rng.standard_normal(n).astype(F32) * F32(2.0) ** rng.integers(-20, 20, n).astype(F32)
    x[: n // 4] = np.round(x[: n // 4] * 8) / 8
    return x


def rounded_exactly(value: Fraction, mode: str) -> F32:
    near = F32(float(value))
    around = [near, np.nextafter(near, F32(np.inf)), np.nextafter(near, F32(-np.inf))]
    below = max(x for x in around if Fraction(float(x)) <= value)
    above = min(x for x in around if Fraction(float(x)) >= value)
    if mode == "rn":
        distance = [value - Fraction(float(below)), Fraction(float(above)) - value]
        if distance[0] == distance[1]:
            return below if below.view(np.uint32) % 2 == 0 else above
        return below if distance[0] < distance[1] else above
    return {"rm": below, "rp": above, "rz": below if value >= 0 else above}[mode]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_fma(mode):
    rng = np.random.default_rng(3)
    a, b, c = tricky(rng), tricky(rng), tricky(rng)
    c[::3] = -(a * b)[::3]
    c[1::7] = F32(2.0**-60)  # a product on a tie, pushed off it by very little
    a[1::7], b[1::7] = F32(1 + 2.0**-12), F32(1 + 2.0**-12)
    if mode == "rn":
        got = fmt.fma32(a.astype("f8"), b.astype("f8"), c.astype("f8"))
    else:
        got = fmt.fma_directed(a, b, c, mode)
    for x, y, z, result in zip(a, b, c, got, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert result == rounded_exactly(exact, mode)


def test_fma_is_rounded_once_where_the_double_sum_is_a_tie():
    a, b, c = np.float64(1 + 2.0**-23), np.float64(1 + 2.0**-1), np.float64(2.0**-80)
    assert fmt.fma32(*(np.full((1, 1), v) for v in (a, b, c)))[0, 0] == F32(1.5 + 2.0**-22)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_quotients_and_roots(mode):
    rng = np.random.default_rng(4)
    a, b = tricky(rng), tricky(rng)
    b[b == 0] = 1
    for x, y, result in zip(a, b, fmt.div_directed(a, b, mode), strict=True):
        assert result == rounded_exactly(Fraction(float(x)) / Fraction(float(y)), mode)
    for x, root in zip(np.abs(a), fmt.sqrt_directed(np.abs(a), mode), strict=True):
        near = np.sqrt(x)
        square = Fraction(float(near)) ** 2 - Fraction(float(x))
        step = 0 if square == 0 else (-1 if square > 0 else 0) if mode != "rp" else (square < 0)
        want = near if not step else np.nextafter(near, F32(np.inf if step > 0 else -np.inf))
        assert root == want


def test_bfloat16_of_every_half():
    x = fmt.HALF_TO_FLOAT
    ours = fmt.float_from_bfloat(fmt.bfloat_bits(x))
    assert np.array_equal(ours, x.astype(ml_dtypes.bfloat16).astype(F32), equal_nan=True)


def test_float64_to_bfloat16_rounds_once():
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40])
    assert fmt.float_from_bfloat(fmt.bfloat_bits(x)).tolist() == [1 + 2.0**-7, 1.0]


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_fp8(kind):
    dtype = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[kind]
    codes = np.arange(256, dtype=np.uint8)
    values = fmt.float_from_fp8(codes, kind)
    assert np.array_equal(values, codes.view(dtype).astype(F32), equal_nan=True)
    finite = np.isfinite(values)
    assert (fmt.fp8_bits(values[finite], kind) == codes[finite]).all()
    limit = {"e4m3": 448.0, "e5m2": 57344.0}[kind]
    far = fmt.float_from_fp8(fmt.fp8_bits(F32([1e9, -np.inf, limit + 1]), kind), kind)
    assert far.tolist() == [limit, -limit, limit]
    assert fmt.fp8_bits(F32([np.nan]), kind)[0] == 0x7F


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8", "i2", "u1"])
def test_float_to_integer_saturates(dtype):
    x = F32([np.nan, -np.inf, np.inf, 1e20, -1e20, 2.5, -2.5, 3.5, 0.49999997])
    limits = np.iinfo(dtype)
    nan = {"i8": -(2**63), "u8": 2**63}.get(dtype, 0)  # PTX ISA, cvt: the top bit of 64
    want = [nan] + [
        min(max(v, limits.min), limits.max) for v in (-(2**70), 2**70, 10**20, -(10**20))
    ]
    want += [min(max(v, limits.min), limits.max) for v in (2, -2, 4, 0)]
    assert fmt.float_to_int(x, np.dtype(dtype), "rni").tolist() == want


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8"])
def test_nan_of_a_double_becomes_the_top_bit(dtype):
    (code,) = fmt.float_to_int(np.array([np.nan]), np.dtype(dtype), "rzi").tobytes()[-1:]
    assert code == 0x80


def test_signed_zeros():
    a, b = F32([[0.0, -0.0, 1.0]]), F32([[-0.0, 0.0, np.nan]])
    assert np.signbit(fmt.minimum(a, b)).tolist() == [[True, True, False]]
    assert not np.signbit(fmt.maximum(a, b)).any()
    assert fmt.maximum(a, b)[0, 2] == 1
