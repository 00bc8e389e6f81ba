"""Integer arithmetic, bit by bit."""

import numpy as np

from .case import sample
from .operands import integers, long_integers, shuffled_integers

N = 64
_32, _64 = 2**32, 2**64


def _signed(value, bits):
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def _each(columns, function, dtype):
    """One row of results for each row of operands, wrapped to `dtype`."""
    bits = 8 * np.dtype(dtype).itemsize
    rows = [
        [_signed(value, bits) for value in function(*row)]
        for row in zip(*(c.tolist() for c in columns), strict=True)
    ]
    return np.array(rows, np.dtype(f"i{bits // 8}")).view(dtype)


def _truncated(x, y):
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


@sample(grid=2)
def integer_alu(rng):
    a, b = integers(rng, N), shuffled_integers(rng, N)
    c, d = long_integers(rng, N), long_integers(rng, N)

    def narrow(x, y):
        ux, uy = x % _32, y % _32
        logic = [x & y, x | y, x ^ y, ~x, -x]
        order = [min(x, y), max(x, y), min(ux, uy), max(ux, uy), abs(x)]
        return [x + y, x - y, x * y, *logic, *order, x * 3 + y if x < y else y * 5 - x]

    def wide(p, q):
        logic, order = (p & q) ^ ~(p | q), [min(p, q), max(p % _64, q % _64), abs(p)]
        return [p + q, p - q, p * q, logic, *order]

    expected = {
        "narrow": _each([a, b], narrow, np.uint32),
        "wide": _each([c, d], wide, np.int64),
    }
    outputs = {"narrow": np.zeros((N, 14), np.uint32), "wide": np.zeros((N, 7), np.int64)}
    return {"a": a, "b": b, "c": c, "d": d, **outputs}, expected


@sample(grid=2)
def multiply_high_wide(rng):
    a, b = integers(rng, N), shuffled_integers(rng, N)
    c, d = long_integers(rng, N), long_integers(rng, N)

    def high(x, y):
        product = x * y >> 32
        return [product, (x % _32) * (y % _32) >> 32, product + 17, (x & 0xFFFF) * (y & 0xFF)]

    def wide(x, y, p, q):
        halves = [p * q >> 64, (p % _64) * (q % _64) >> 64]
        return [x * y, (x % _32) * (y % _32), x * y + p, *halves, (x & 0xFFFF) * (y & 0xFFFF)]

    expected = {
        "high": _each([a, b], high, np.int32),
        "wide": _each([a, b, c, d], wide, np.int64),
    }
    outputs = {"high": np.zeros((N, 4), np.int32), "wide": np.zeros((N, 6), np.int64)}
    return {"a": a, "b": b, "c": c, "d": d, **outputs}, expected


@sample(grid=2)
def shifts(rng):
    value, wide_value = integers(rng, N), long_integers(rng, N)
    amount = rng.permutation(np.r_[np.arange(40), 63, 64, 65, 255, -1, np.arange(19)])
    amount = amount.astype(np.int32)

    def narrow(v, s):
        s = min(s % _32, 32)
        u = v % _32
        return [v << s, u >> s, v >> s, (v >> 3) ^ (u >> 5) ^ (v << 7)]

    def wide(v, s):
        s = min(s % _32, 64)
        return [v << s, (v % _64) >> s, v >> s]

    expected = {
        "out": _each([value, amount], narrow, np.int32),
        "wide_out": _each([wide_value, amount], wide, np.int64),
    }
    arguments = {"value": value, "amount": amount, "wide_value": wide_value}
    outputs = {"out": np.zeros((N, 4), np.int32), "wide_out": np.zeros((N, 3), np.int64)}
    return {**arguments, **outputs}, expected


def _field(position, length, bits):
    """The low byte counts for 32 bits; ptxas builds the 64-bit forms from shifts that saturate."""
    return (position & 0xFF, length & 0xFF) if bits == 32 else (min(position, 64), min(length, 64))


def _extract(value, position, length, bits, signed):
    """bfe as the ISA states it: beyond the top, a signed field repeats its sign bit."""
    position, length = _field(position, length, bits)
    if length == 0:
        return 0
    field = (value >> position) & ((1 << length) - 1)
    sign_at = min(position + length - 1, bits - 1)
    if signed and value >> sign_at & 1:
        field |= -1 << max(min(length, bits - position), 0)
    return field


def _insert(field, base, position, length, bits):
    position, length = _field(position, length, bits)
    mask = (((1 << length) - 1) << position) % (1 << bits)
    return (base & ~mask) | ((field << position) & mask)


@sample(grid=4)
def bit_fields(rng):
    n = 128
    value, base = (rng.integers(0, _32, n, dtype=np.uint32) for _ in range(2))
    position = rng.choice([0, 1, 5, 16, 31, 32, 40, 63, 64, 300], n).astype(np.uint32)
    length = rng.choice([0, 1, 7, 16, 31, 32, 33, 64, 255, 260], n).astype(np.uint32)

    def narrow(v, b, p, k):
        fields = [_extract(v, p, k, 32, signed) for signed in (False, True)]
        return [*fields, _insert(v, b, p, k, 32)]

    def wide(v, b, p, k):
        w = v << 32 | b
        fields = [_extract(w, p, k, 64, signed) for signed in (False, True)]
        return [*fields, _insert(~w % _64, w, p, k, 64)]

    columns = [value, base, position, length]
    expected = {
        "out": _each(columns, narrow, np.uint32),
        "wide_out": _each(columns, wide, np.uint64),
    }
    arguments = {"value": value, "base": base, "position": position, "length": length}
    outputs = {"out": np.zeros((n, 3), np.uint32), "wide_out": np.zeros((n, 3), np.uint64)}
    return {**arguments, **outputs}, expected


@sample(grid=2)
def byte_permute(rng):
    a, b, selector = (rng.integers(0, _32, N, dtype=np.uint32) for _ in range(3))
    by_mode = {  # the ISA's table: four source bytes, most significant first, per selector value
        "f4e": ["3210", "4321", "5432", "6543"],
        "b4e": ["5670", "6701", "7012", "0123"],
        "rc8": ["0000", "1111", "2222", "3333"],
        "ecl": ["3210", "3211", "3222", "3333"],
        "ecr": ["0000", "1110", "2210", "3210"],
        "rc16": ["1010", "3232", "1010", "3232"],
    }

    def modes(x, y, s):
        source = (y << 32 | x).to_bytes(8, "little")
        default = bytearray()
        for nibble in (s >> 4 * k & 15 for k in range(4)):
            byte = source[nibble & 7]
            default.append((255 if byte >> 7 else 0) if nibble & 8 else byte)
        picks = [bytes(source[int(c)] for c in by_mode[m][s & 3]) for m in by_mode]
        return [int.from_bytes(default, "little"), *(int.from_bytes(p, "big") for p in picks)]

    out = np.zeros((N, 7), np.uint32)
    expected = {"out": _each([a, b, selector], modes, np.uint32)}
    return {"a": a, "b": b, "selector": selector, "out": out}, expected


@sample(grid=2)
def funnel_shift(rng):
    low, high = (rng.integers(0, _32, N, dtype=np.uint32) for _ in range(2))
    amount = rng.permutation(np.r_[np.arange(48), 63, 64, 100, _32 - 1, np.arange(12)])
    amount = amount.astype(np.uint32)

    def both(x, y, s):
        pair = y << 32 | x
        left = [(pair << k >> 32) for k in (s % 32, min(s, 32))]
        return [*left, *(pair >> k for k in (s % 32, min(s, 32)))]

    out = np.zeros((N, 4), np.uint32)
    expected = {"out": _each([low, high, amount], both, np.uint32)}
    return {"low": low, "high": high, "amount": amount, "out": out}, expected


@sample(grid=2)
def bit_counts(rng):
    a = integers(rng, N).view(np.uint32)
    b = long_integers(rng, N).view(np.uint64)

    def first(x):
        return (x & -x).bit_length()

    def counts(x, y):
        sign_free = x if x < 2**31 else ~x % _32
        found = [v.bit_length() - 1 for v in (x, sign_free)]
        shift = 31 - found[0] if x else -1
        narrow = [x.bit_count(), 32 - x.bit_length(), int(f"{x:032b}"[::-1], 2), first(x)]
        return [*narrow, y.bit_count(), 64 - y.bit_length(), first(y), *found, shift]

    reverse = np.array([int(f"{y:064b}"[::-1], 2) for y in b.tolist()], np.uint64)
    expected = {"out": _each([a, b], counts, np.int32), "reversed": reverse}
    outputs = {"out": np.zeros((N, 10), np.int32), "reversed": np.zeros(N, np.uint64)}
    return {"a": a, "b": b, **outputs}, expected


@sample(grid=2)
def dot_products(rng):
    a, b, c = integers(rng, N), shuffled_integers(rng, N), shuffled_integers(rng, N)
    a8, b8 = (x.view(np.int8).reshape(N, 4).astype(np.int64) for x in (a, b))
    unsigned = [x.view(np.uint8).reshape(N, 4).astype(np.int64) for x in (a, b)]
    a16 = a.view(np.int16).reshape(N, 2).astype(np.int64)
    sums = [
        (a8 * b8).sum(1),
        (unsigned[0] * unsigned[1]).sum(1),
        (a16 * b8[:, :2]).sum(1),
        (a16 * b8[:, 2:]).sum(1),
    ]
    expected = np.stack([s + c for s in sums], 1).astype(np.int32)
    return {"a": a, "b": b, "c": c, "out": np.zeros((N, 4), np.int32)}, {"out": expected}


@sample(grid=2)
def integer_division(rng):
    a, b = integers(rng, N), rng.permutation(integers(rng, N))
    b[rng.random(N) < 0.5] %= 1000
    b[b == 0] = 3
    c, d = long_integers(rng, N), long_integers(rng, N)
    d[d == 0] = -7
    overflow = (a == -(2**31)) & (b == -1) | (c == -(2**63)) & (d == -1)
    b[overflow], d[overflow] = 5, 5

    def narrow(x, y):
        ux, uy = x % _32, y % _32
        q = _truncated(x, y)
        return [q, x - q * y, ux // uy, ux % uy, _truncated(x, 7), ux % 48]

    def wide(x, y):
        q = _truncated(x, y)
        return [q, x - q * y, x % _64 // (y % _64), x % _64 % (y % _64)]

    expected = {
        "out": _each([a, b], narrow, np.int32),
        "wide_out": _each([c, d], wide, np.int64),
    }
    outputs = {"out": np.zeros((N, 6), np.int32), "wide_out": np.zeros((N, 4), np.int64)}
    return {"a": a, "b": b, "c": c, "d": d, **outputs}, expected


@sample(grid=2)
def logic_tables(rng):
    a, b, c = (integers(rng, N).view(np.uint32) for _ in range(3))
    b, c = rng.permutation(b), rng.permutation(c)

    def tables(x, y, z):
        def lookup(table):
            rows = (4 * (x >> k & 1) + 2 * (y >> k & 1) + (z >> k & 1) for k in range(32))
            return sum((table >> row & 1) << k for k, row in enumerate(rows))

        difference = abs(_signed(x, 32) - _signed(y, 32))
        return [lookup(0x96), lookup(0xCA), lookup(0x1B), abs(x - y) + z, difference + z]

    out = np.zeros((N, 5), np.uint32)
    return {"a": a, "b": b, "c": c, "out": out}, {"out": _each([a, b, c], tables, np.uint32)}


@sample(grid=2)
def carry_chain(rng):
    a, b = (rng.choice(integers(rng, 200), (N, 3)).view(np.uint32) for _ in range(2))
    whole = [sum(x[:, k].astype(object) << 32 * k for k in range(3)) for x in (a, b)]
    limbs = [
        [value >> 32 * k & (_32 - 1) for k in range(3)]
        for value in (whole[0] + whole[1], whole[0] - whole[1])
    ]
    expected = np.stack([x for pair in limbs for x in pair], 1).astype(np.uint32)
    return {"a": a, "b": b, "out": np.zeros((N, 6), np.uint32)}, {"out": expected}
