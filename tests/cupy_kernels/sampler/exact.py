"""Exact arithmetic, rounded once: the truth that float kernels are held against.

Values are Python fractions, so nothing is lost before the one rounding to the target format.
Independent of NumPy's float types and of ml_dtypes, both of which the simulator uses itself.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True)
class Format:
    """A binary floating-point format; `has_infinity` is false for e4m3, whose top code is NaN."""

    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool = True

    @property
    def bias(self):
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def sign(self):
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def infinity(self):
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def nan(self):
        return self.sign - 1

    @property
    def largest(self):
        return self.infinity - 1 if self.has_infinity else self.nan - 1

    def decode(self, code):
        """The value of one code as a Python float (exact for all formats up to float64)."""
        magnitude = code & (self.sign - 1)
        sign = -1.0 if code & self.sign else 1.0
        if self.is_nan(code):
            return math.nan
        if self.has_infinity and magnitude == self.infinity:
            return sign * math.inf
        exponent, mantissa = magnitude >> self.mantissa_bits, magnitude % (1 << self.mantissa_bits)
        mantissa += (1 << self.mantissa_bits) if exponent else 0
        return sign * math.ldexp(mantissa, max(exponent, 1) - self.bias - self.mantissa_bits)

    def is_nan(self, code):
        magnitude = code & (self.sign - 1)
        return magnitude > self.infinity if self.has_infinity else magnitude == self.nan

    def encode(self, value, mode="rn", saturate=False):
        """Round a fraction, or a float that may be special, to a code. Modes: rn rz ru rd rna."""
        if isinstance(value, float):
            if math.isnan(value):
                return self.nan
            sign = self.sign if math.copysign(1, value) < 0 else 0
            if math.isinf(value):
                return sign | (self.largest if saturate else self.infinity)
            if value == 0:
                return sign
        value = Fraction(value)
        sign = self.sign if value < 0 else 0
        return sign | self._encode_magnitude(abs(value), bool(sign), mode, saturate)

    def _encode_magnitude(self, value, negative, mode, saturate):
        exponent = max(_floor_log2(value), 1 - self.bias)
        units = value / Fraction(2) ** (exponent - self.mantissa_bits)
        count = _round_to_integer(units, negative, mode)
        code = count + ((exponent + self.bias - 1) << self.mantissa_bits)
        if code <= self.largest:
            return code
        towards_zero = mode == "rz" or mode == ("ru" if negative else "rd")
        return self.largest if saturate or towards_zero else self.infinity


def _floor_log2(value):
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if value >= Fraction(2) ** guess else guess - 1


def _round_to_integer(units, negative, mode):
    floor = math.floor(units)
    rest = units - floor
    if mode == "rn":
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2 == 1)
    elif mode == "rna":
        up = rest >= Fraction(1, 2)
    else:
        up = rest > 0 and mode == ("rd" if negative else "ru")
    return floor + int(up)


F64, F32 = Format(11, 52), Format(8, 23)
F16, BF16, TF32 = Format(5, 10), Format(8, 7), Format(8, 10)
E4M3, E5M2 = Format(4, 3, has_infinity=False), Format(5, 2)


def add(x, y, mode="rn"):
    """x + y exactly; an exact zero is +0, or −0 when rounding down, unless both signs agree."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x + y
    total = Fraction(x) + Fraction(y)
    if total:
        return total
    if math.copysign(1, x) == math.copysign(1, y):
        return x
    return -0.0 if mode == "rd" else 0.0


def multiply(x, y, mode="rn"):
    """The product x y, exactly."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return _ieee(np.multiply, x, y)
    return Fraction(x) * Fraction(y) or math.copysign(0.0, x) * math.copysign(1, y)


def fma(x, y, z, mode="rn"):
    """The sum x y + z, exactly."""
    if not all(map(math.isfinite, (x, y, z))):
        return _ieee(np.add, _ieee(np.multiply, x, y), z)
    product = Fraction(x) * Fraction(y)
    if product == 0:
        return add(multiply(x, y), z, mode)
    return product + Fraction(z) or (-0.0 if mode == "rd" else 0.0)


def divide(x, y, mode="rn"):
    """The quotient x / y, exactly."""
    if not (math.isfinite(x) and math.isfinite(y)) or y == 0 or x == 0:
        return _ieee(np.divide, x, y)
    return Fraction(x) / Fraction(y)


def square_root(x, mode="rn"):
    """√x, or a fraction that rounds as √x does in every format up to float64."""
    if not math.isfinite(x) or x <= 0:
        return _ieee(np.sqrt, x)
    half_scale = 1200
    scaled = Fraction(x) * 4**half_scale
    root = math.isqrt(math.floor(scaled))
    sticky = Fraction(0) if root * root == scaled else Fraction(1, 2)
    return (root + sticky) / 2**half_scale


def _ieee(function, *operands):
    with np.errstate(all="ignore"):
        return float(function(*(np.float64(x) for x in operands)))


def rounded(function, target, *operands, mode="rn", saturate=False):
    """`function` over arrays of floats, each result rounded once to `target`."""
    columns = [np.asarray(x).astype(np.float64).ravel().tolist() for x in operands]
    codes = [
        target.encode(function(*row, mode=mode), mode, saturate)
        for row in zip(*columns, strict=True)
    ]
    return _as_array(codes, target)


def converted(values, target, mode="rn", saturate=False):
    """An array of floats or integers, each rounded to `target`."""
    items = np.asarray(values).ravel().tolist()
    codes = [target.encode(x if isinstance(x, float) else x or 0.0, mode, saturate) for x in items]
    return _as_array(codes, target)


def decoded(codes, source):
    """The float64 values of an array of codes."""
    return np.array([source.decode(int(c)) for c in np.ravel(codes)]).reshape(np.shape(codes))


def _as_array(codes, target):
    """NumPy's own float type where it has one, else the codes as unsigned integers."""
    width = 1 + target.exponent_bits + target.mantissa_bits
    unsigned = np.dtype({8: "u1", 16: "u2", 19: "u4", 32: "u4", 64: "u8"}[width])
    native = {F64: np.float64, F32: np.float32, F16: np.float16}.get(target, unsigned)
    return np.array(codes, unsigned).view(native)
