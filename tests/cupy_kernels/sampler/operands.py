"""Numbers worth testing with: the corners of each type, then random ones."""

import numpy as np

_INTEGER_CODES = """0 1 2 3 1f 20 7f 80 ff ffff 10000
    7fffffff 80000000 80000001 ffffffff fffffffe ffffff80 55555555"""
_FLOAT_CODES = """00000000 80000000 3f800000 bf800000 7f800000 ff800000 7fc00000
    00000001 80000001 007fffff 00800000 80800000 7f7fffff ff7fffff
    3f000000 3fc00000 40200000 c0200000 4b000001 4f000000 cf000001
    4f800000 5f000000 df000000 5f800000 3f7fffff 3f800001 33800000"""
CORNERS_32 = np.array(
    [int(code, 16) for code in _INTEGER_CODES.split()],
    np.uint32,
)
FLOAT_CORNERS = np.array(
    [int(code, 16) for code in _FLOAT_CODES.split()],
    np.uint32,
).view(np.float32)


def integers(rng, n):
    """int32: corners first, then random bits."""
    values = rng.integers(0, 2**32, n, dtype=np.uint32)
    values[: len(CORNERS_32)] = CORNERS_32[:n]
    return values.view(np.int32)


def shuffled_integers(rng, n):
    """The same numbers in another order, so that corners meet corners."""
    return rng.permutation(integers(rng, n))


def long_integers(rng, n):
    """int64: small ones, corners and random bits."""
    values = rng.integers(0, 2**64, n, dtype=np.uint64)
    corners = [0, 1, 2**63, 2**63 - 1, 2**64 - 1, 2**32, 2**32 - 1, 2**53 + 1, 2**24 + 1]
    values[: len(corners)] = np.array(corners, np.uint64)
    values[len(corners) : n // 2] %= np.uint64(10**6)
    return rng.permutation(values).view(np.int64)


def floats(rng, n):
    """float32: the corners, then numbers of all magnitudes."""
    values = rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
    values[: len(FLOAT_CORNERS)] = FLOAT_CORNERS[:n]
    near_one = slice(n // 2, n)
    values[near_one] = rng.standard_normal(n - n // 2).astype(np.float32)
    return values


def shuffled_floats(rng, n):
    """The same kind of numbers in another order."""
    return rng.permutation(floats(rng, n))


def halves(rng, n):
    """float16 of all kinds: random bits, NaN and infinities among them, half of them near one."""
    values = rng.integers(0, 2**16, n, dtype=np.uint16).view(np.float16)
    values[n // 2 :] = rng.standard_normal(n - n // 2).astype(np.float16)
    values[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504.0]
    return rng.permutation(values)
