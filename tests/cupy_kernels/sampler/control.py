"""Control flow, and where values live: branches, calls, local, constant and by-value data."""

import numpy as np

from .case import sample
from .operands import integers

N = 64


def _per_element(function, *columns, dtype):
    rows = zip(*(c.tolist() for c in columns), strict=True)
    bits = 8 * np.dtype(dtype).itemsize
    values = [function(*row) % (1 << bits) for row in rows]
    return np.array(values, f"u{bits // 8}").view(dtype)


@sample(grid=2)
def predicates(rng):
    a, b = (rng.integers(-6, 7, N).astype(np.int32) for _ in range(2))
    p = a < b
    q, r = (a > 0) & p, (a <= 0) & p
    s = (b == 3) | ~p
    both = q + np.where(r, 10, 0)
    either = np.where(p ^ s, 5, 7)
    guarded = np.where(s, -1, a + 100)
    chosen = np.where(b >= 0, a, b)
    expected = np.stack([both, either, guarded, chosen], 1)
    return {"a": a, "b": b, "out": np.zeros((N, 4), np.int32)}, {"out": expected}


@sample(grid=2)
def if_else(rng):
    a = rng.integers(0, 1000, N).astype(np.int32)
    expected = np.where(a & 1, a * 3 + 1 + a + 1000, a // 2 + a - 1000)
    return {"a": a, "out": np.zeros(N, np.int32)}, {"out": expected}


@sample(grid=2)
def nested_branches(rng):
    a = rng.integers(0, 2**32, N, dtype=np.uint32)

    def walk(x):
        y = 0
        for k in range(8):
            if x & 1:
                y = (y + x ^ (0x55 if x & 4 else 0)) if x & 2 else y - k
            elif x & 8:
                y = y * 3 + 1
            y %= 2**32
            x >>= 3
        return y

    out = np.zeros(N, np.uint32)
    return {"a": a, "out": out}, {"out": _per_element(walk, a, dtype=np.uint32)}


@sample(grid=2)
def lane_trip_counts(rng):
    start = rng.integers(1, 3000, N, dtype=np.uint32)
    start[:4] = [1, 2, 27, 97]

    def walk(x):
        n, top = 0, x
        while x != 1:
            n += 1
            if n == 40:
                break
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            top = max(top, x)
        return n, top

    walks = np.array([walk(x) for x in start.tolist()], np.uint32)
    outputs = {"steps": np.zeros(N, np.uint32), "peak": np.zeros(N, np.uint32)}
    return {"start": start, **outputs}, {"steps": walks[:, 0], "peak": walks[:, 1]}


@sample(block=64)
def early_return(rng):
    n = 41
    a = integers(rng, 64)
    expected = np.r_[a[:n][::-1], np.full(64 - n, -1, np.int32)]
    return {"a": a, "out": np.full(64, -1, np.int32), "n": np.int32(n)}, {"out": expected}


@sample(grid=2)
def switch_cases(rng):
    a = rng.integers(-2, 12, N).astype(np.int32)

    def choose(x, i):
        cases = {0: 11, 1: 55, 2: 33, 3: x * i, 4: i - 5, 7: ~i, 9: i * i}
        return cases.get(x, -x)

    expected = _per_element(choose, a, np.arange(N), dtype=np.int32)
    return {"a": a, "out": np.zeros(N, np.int32)}, {"out": expected}


@sample(grid=2)
def device_calls(rng):
    a = rng.integers(-50, 50, N).astype(np.int32)
    p = rng.integers(-9, 9, (N, 2)).astype(np.float32)

    def called(x, i):
        y = 3 * x + i
        if i % 3:
            result = 1
            for k in range(i % 5):
                result = 3 * result * (x & 7) + k
            y += result
        return y

    expected = {
        "out": _per_element(called, a, np.arange(N), dtype=np.int32),
        "pairs": np.stack([p.sum(1), p[:, 0] - p[:, 1]], 1) * np.float32(0.5),
    }
    return {"a": a, "p": p, "out": np.zeros(N, np.int32), "pairs": np.zeros_like(p)}, expected


@sample(grid=2)
def local_array(rng):
    order = np.stack([rng.permutation(16) for _ in range(N)]).astype(np.int32)
    a = rng.integers(-100, 100, (N, 16)).astype(np.int32)
    slots = np.empty_like(a)
    np.put_along_axis(slots, order, a, 1)
    expected = slots + np.take_along_axis(slots, slots & 15, 1)
    return {"order": order, "a": a, "out": np.zeros_like(a)}, {"out": expected}


@sample(grid=2)
def constant_memory(rng):
    a = rng.integers(0, 1000, N).astype(np.int32)
    primes = np.array([2, 3, 5, 7, 11, 13, 17, 19])
    weights = np.array([0.5, -1.25, 3e-3, 1e20], np.float32)
    block = np.arange(N) // 32
    expected = {"out": primes[a & 7] * primes[block & 7] + a % 5 - 2, "scaled": weights[a & 3]}
    return {"a": a, "out": np.zeros(N, np.int32), "scaled": np.zeros(N, np.float32)}, expected


LAUNCH = np.dtype(
    [("scale", "f4"), ("offset", "i4"), ("bias", "f8"), ("flags", "u1", 4), ("limit", "i8")],
    align=True,
)


@sample(grid=2)
def struct_by_value(rng):
    a = rng.integers(-99, 99, N).astype(np.float32)
    launch = np.array((0.25, -7, 1e-3, [1, 0, 0, 200], 50), LAUNCH)[()]
    x = (a * np.float32(0.25)).astype(np.float64) + 1e-3
    x += np.where(np.array([1, 0, 0, 1])[np.arange(N) % 4], -7, 0)
    expected = np.where(np.arange(N) < 50, x, -1.0)
    return {"a": a, "launch": launch, "out": np.zeros(N)}, {"out": expected}


@sample()
def generic_pointer(rng):
    a = rng.integers(-9, 9, 96).astype(np.int32)
    rows = a.reshape(32, 3)
    sums = [rows, rows[::-1] * 10, rows * 100 + np.arange(3)]
    i = np.arange(32)
    chosen = np.choose(i % 3, [s.sum(1) for s in sums])
    untouched = np.where(i % 2, -1, -i)
    expected = np.r_[chosen, untouched, -(i ^ 2)].astype(np.int32)
    return {"a": a, "out": np.full(96, -1, np.int32)}, {"out": expected}


@sample(grid=2, kernel="row_sums<float, 6>")
def template_kernel(rng):
    a = rng.integers(-99, 99, (N, 6)).astype(np.float32)
    return {"a": a, "out": np.zeros(N, np.float32)}, {"out": a.sum(1)}


@sample(grid=3, block=45)
def ragged_block(rng):
    a = rng.integers(-999, 999, 135).astype(np.int32)
    expected = a.reshape(3, 45)[:, ::-1].ravel() * 100 + np.tile(np.arange(45) % 32, 3)
    return {"a": a, "out": np.zeros(135, np.int32)}, {"out": expected}


@sample(grid=(3, 2, 2), block=(5, 4, 3))
def grid_3d(rng):
    z, y, x = np.indices((6, 8, 15))
    lane = ((z % 3 * 4 + y % 4) * 5 + x % 5) % 32
    expected = x + 100 * y + 10000 * z + 1000000 * lane
    return {"out": np.zeros((6, 8, 15), np.int32)}, {"out": expected}


@sample(
    printed="thread 0 of warp:  2.50% 5 0x5 k\nthread 16 of warp: -1.50% 4294967293 0xfffffffd k\n",
)
def printf_lines(rng):
    a = np.arange(32, dtype=np.int32) + 5
    a[16] = -3
    return {"a": a, "out": np.zeros(32, np.int32)}, {"out": a}
