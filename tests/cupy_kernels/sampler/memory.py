"""Shared memory, vectors, bytes, barriers and atomics."""

import numpy as np

from .case import sample
from .operands import integers


@sample(grid=(3, 2), block=(32, 8))
def static_shared(rng):
    rows, columns = 50, 70
    a = rng.standard_normal((rows, columns)).astype(np.float32)
    sizes = {"rows": np.int32(rows), "columns": np.int32(columns)}
    return {"a": a, "out": np.zeros((columns, rows), np.float32), **sizes}, {"out": a.T}


@sample(grid=3, block=40, shared_bytes=40 * 12)
def dynamic_shared(rng):
    a = rng.integers(-999, 999, (3, 40)).astype(np.int32)
    expected = np.cumsum(a, 1)[:, ::-1]
    return {"a": a, "out": np.zeros((3, 40)), "n": np.int32(40)}, {"out": expected}


@sample(block=64)
def vector_loads(rng):
    a, c = rng.standard_normal((64, 4)).astype(np.float32), rng.standard_normal((64, 2))
    b = rng.integers(-99, 99, (64, 2)).astype(np.int32)
    d = rng.integers(0, 256, (64, 4), dtype=np.uint8)
    expected = {
        "out4": a[::-1, ::-1],
        "out2": b[np.arange(64) ^ 1, ::-1],
        "outd": c[:, ::-1],
        "outc": d[:, [2, 1, 0, 3]] + np.array([1, 0, 0, 0], np.uint8),
    }
    outputs = {n: np.zeros(x.shape, x.dtype) for n, x in expected.items()}
    return {"a": a, "b": b, "c": c, "d": d, **outputs}, expected


@sample(block=64)
def byte_accesses(rng):
    a = rng.integers(-128, 128, 64).astype(np.int8)
    b = rng.integers(0, 256, 64).astype(np.uint8)
    c = rng.integers(-(2**15), 2**15, 64).astype(np.int16)
    expected = {
        "sums": a.astype(np.int32) + b * np.int32(256) + c,
        "bytes": b[::-1] + a.view(np.uint8),
        "halves": (c[::-1].astype(np.int32) * 3).astype(np.uint16),
    }
    outputs = {n: np.zeros(64, x.dtype) for n, x in expected.items()}
    return {"a": a, "b": b, "c": c, **outputs}, expected


@sample(grid=3, block=80)
def barrier_votes(rng):
    a = rng.integers(-49, 40, (3, 80)).astype(np.int32)
    a[1, 70], a[2, 5] = -60, 50
    block = [(a > 0).sum(1), (a > -50).all(1), (a > 40).any(1)]
    expected = np.broadcast_to(np.stack(block, 1)[:, None, :], (3, 80, 3))
    return {"a": a, "out": np.zeros((3, 80, 3), np.int32)}, {"out": expected}


@sample(block=128)
def named_barriers(rng):
    a = integers(rng, 5 * 64).reshape(5, 64)
    expected = (a + np.arange(5, dtype=np.int32)[:, None])[:, ::-1]
    return {"a": a, "out": np.zeros((5, 64), np.int32), "rounds": np.int32(5)}, {"out": expected}


@sample(block=128)
def barrier_in_a_register(rng):
    a = integers(rng, 128)
    return {"a": a, "out": np.zeros(128, np.int32)}, {"out": a[np.arange(128) ^ 63]}


@sample(block=64)
def warp_sync(rng):
    a = rng.integers(-999, 999, 64).astype(np.int32)
    i = np.arange(64)
    x = a[i ^ 5]
    expected = np.where(i % 32 < 16, 2 * x[i ^ 15], x)
    return {"a": a, "out": np.zeros(64, np.int32)}, {"out": expected}


def _wrapping_increment(value, limit):
    return 0 if value >= limit else value + 1


def _wrapping_decrement(value, limit):
    return limit if value == 0 or value > limit else value - 1


@sample(grid=3, block=64)
def integer_atomics(rng):
    a = integers(rng, 192)
    wide_a = a.astype(np.int64)
    cells = np.zeros(18, np.int32)
    cells[[2, 3, 5]] = [2**31 - 1, -(2**31), -1]
    unsigned = a.view(np.uint32)
    up, down = 0, 0
    for _ in range(192):
        up, down = _wrapping_increment(up, 9), _wrapping_decrement(down, 6)
    logic = [np.bitwise_and.reduce(a | 0xFF), np.bitwise_or.reduce(a & 0xFF00)]
    folds = [wide_a.sum(), -wide_a.sum(), a.min(), a.max(), unsigned.max(), *logic]
    folds += [np.bitwise_xor.reduce(a), up, down, *np.bincount(a & 7, minlength=8)]
    long = wide_a.astype(object)
    peak = max(x * 977 % 2**64 for x in long)
    expected = {
        "cells": np.array([int(f) & 0xFFFFFFFF for f in folds], np.uint32).view(np.int32),
        "wide": np.array([(long << 20).sum() % 2**64, peak], np.uint64),
    }
    return {"a": a, "cells": cells, "wide": np.zeros(2, np.uint64)}, expected


@sample(grid=2, block=32)
def atomic_results(rng):
    i = np.arange(64, dtype=np.int32)
    slot, token = integers(rng, 64), i.copy()
    expected = {
        "counter": np.array([64], np.int32),
        "ticket": np.ones(64, np.int32),
        "slot": i * 7,
        "token": np.where(i % 2, i, 1000 + i),
        "out": np.stack([slot, i], 1),
    }
    arguments = {"counter": np.zeros(1, np.int32), "ticket": np.zeros(64, np.int32)}
    outputs = {"slot": slot.copy(), "token": token, "out": np.zeros((64, 2), np.int32)}
    return {**arguments, **outputs}, expected


@sample(grid=2, block=64)
def float_atomics(rng):
    a = rng.integers(-99, 99, 128).astype(np.float32)
    expected = {"sums": np.r_[a.reshape(-1, 4).sum(0), 2.5], "wide": [a.sum() * 0.5]}
    return {"a": a, "sums": np.zeros(5, np.float32), "wide": np.zeros(1)}, expected


@sample(grid=2, block=32)
def half2_atomics(rng):
    a = rng.integers(-8, 9, (64, 2)).astype(np.float16)
    b = rng.integers(-2, 3, (64, 2)).astype(np.float32)
    sums = [np.stack([x[0::2].sum(0), x[1::2].sum(0)]).astype(np.float32) for x in (a, b)]
    as_bfloat = [(x.view(np.uint32) >> 16).astype(np.uint16) for x in (b, sums[1] + 0.0)]
    expected = {"half_sums": sums[0], "bfloat_sums": as_bfloat[1]}
    arguments = {"a": a, "b": as_bfloat[0], "half_sums": np.zeros((2, 2), np.float16)}
    return {**arguments, "bfloat_sums": np.zeros((2, 2), np.uint16)}, expected


@sample(grid=2, block=32)
def compare_and_swap_loop(rng):
    a = rng.uniform(0, 100, 64).astype(np.float32)
    expected = {"peak": a.max(keepdims=True), "attempts": np.ones(64, np.int32)}
    return {"a": a, "peak": np.zeros(1, np.float32), "attempts": np.zeros(64, np.int32)}, expected


@sample(grid=3, block=64)
def shared_atomics(rng):
    a = rng.integers(0, 100, (3, 64)).astype(np.int32)
    bins = np.stack([np.bincount(row & 15, minlength=16) for row in a])
    a[bins[:, 15] < 2, :2] = 15
    bins = np.stack([np.bincount(row & 15, minlength=16) for row in a])
    expected = {"histogram": bins.sum(0), "total": [a.sum()]}
    outputs = {"histogram": np.zeros(16, np.int32), "total": np.zeros(1, np.float32)}
    return {"a": a, **outputs}, expected


@sample(block=64)
def reductions(rng):
    a = rng.integers(-999, 999, 64).astype(np.int32)
    cells = [a.sum(), a.min(), np.bitwise_xor.reduce(a), a.max()]
    expected = {"cells": cells, "sum": [a.sum()]}
    return {"a": a, "cells": np.zeros(4, np.int32), "sum": np.zeros(1, np.float32)}, expected


@sample(grid=6, block=32)
def fenced_counter(rng):
    a = rng.integers(-999, 999, (6, 32)).astype(np.int32)
    expected = {"partial": a.sum(1), "arrived": [6], "total": [a.sum()]}
    partial = {"partial": np.zeros(6, np.int32), "arrived": np.zeros(1, np.uint32)}
    return {"a": a, **partial, "total": np.zeros(1, np.int32)}, expected


@sample()
def async_copy_sizes(rng):
    a, b, c = (rng.integers(0, 999, 32 * words).astype(np.int32) for words in (1, 2, 4))
    tile = np.concatenate([a, b, c])
    return {"a": a, "b": b, "c": c, "out": np.zeros(224, np.int32)}, {
        "out": tile.reshape(7, 32)[:, ::-1]
    }


@sample()
def async_copy_zero_fill(rng):
    a = rng.integers(1, 256, (32, 16), dtype=np.uint8)
    size = rng.choice([0, 4, 8, 12, 16], 32).astype(np.int32)
    kept = np.where(np.arange(32) < 27, size, 0)
    expected = np.where(np.arange(16) < kept[:, None], a, 0).astype(np.uint8)
    out = np.zeros((32, 16), np.uint8)
    return {"a": a, "bytes": size, "out": out, "n": np.int32(27)}, {"out": expected}


@sample()
def async_copy_groups(rng):
    a = rng.integers(-999, 999, (7, 32)).astype(np.int32)
    out = np.zeros((7, 32), np.int32)
    return {"a": a, "out": out, "rounds": np.int32(7)}, {"out": a[:, ::-1]}
