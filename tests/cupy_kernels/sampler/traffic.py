"""Micro-kernels for the counters: each has a hand-made formula for its sectors and requests.

The counts are named as the simulator's totals are; `benchmarks crosscheck` compares the same
totals with the hardware's.
"""

import numpy as np

from .case import sample

N, WARPS = 1024, 32


def _loads(requests, sectors):
    return {"load_requests": requests, "load_sectors": sectors}


def _stores(requests, sectors):
    return {"store_requests": requests, "store_sectors": sectors}


def _copies(requests, sectors):
    return {"cp_async_requests": requests, "cp_async_sectors": sectors}


COALESCED_STORE = _stores(WARPS, 4 * WARPS)


def _floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@sample(grid=4, block=256, counts=_loads(WARPS, 4 * WARPS) | COALESCED_STORE)
def coalesced_copy(rng):
    a = _floats(rng, N)
    return {"a": a, "out": np.zeros_like(a)}, {"out": a}


@sample(grid=4, block=256, counts=_loads(WARPS, WARPS) | COALESCED_STORE)
def broadcast_read(rng):
    a = _floats(rng, WARPS)
    return {"a": a, "out": np.zeros(N, np.float32)}, {"out": np.repeat(a, 32)}


@sample(grid=4, block=256, counts=_loads(WARPS, N) | COALESCED_STORE)
def strided_read(rng):
    a = _floats(rng, N, 64)
    return {"a": a, "out": np.zeros(N, np.float32)}, {"out": a[:, 0]}


@sample(grid=4, block=256, counts=_loads(WARPS, 5 * WARPS) | COALESCED_STORE)
def offset_read(rng):
    a = _floats(rng, N + 1)
    return {"a": a, "out": np.zeros(N, np.float32)}, {"out": a[1:]}


# 32 lanes × 48 bytes: lane k starts at 48 k, so each touches half a sector of its own.
@sample(grid=4, block=256, counts=_loads(WARPS, N) | _stores(WARPS, 16 * WARPS))
def strided_float4(rng):
    a = _floats(rng, 3 * N, 4)
    return {"a": a, "out": np.zeros((N, 4), np.float32)}, {"out": a[::3]}


@sample(grid=4, block=256, counts=_loads(WARPS, 16 * WARPS) | _stores(WARPS, 16 * WARPS))
def read_only_path(rng):
    a = _floats(rng, N, 4)
    return {"a": a, "out": np.zeros_like(a)}, {"out": a}


@sample(grid=4, block=256, counts=_loads(2 * WARPS, 3 * WARPS) | _stores(2 * WARPS, 3 * WARPS))
def narrow_copies(rng):
    a = rng.integers(0, 256, N).astype(np.uint8)
    b = rng.integers(0, 2**16, N).astype(np.uint16)
    outputs = {"bytes": np.zeros_like(a), "halves": np.zeros_like(b)}
    return {"a": a, "b": b, **outputs}, {"bytes": a, "halves": b}


# Every third thread leaves lanes in all four sectors; five lanes two floats apart span two sectors.
@sample(
    grid=4,
    block=256,
    counts=_loads(2 * WARPS, (4 + 2) * WARPS) | _stores(2 * WARPS, (4 + 1) * WARPS),
)
def partial_warps(rng):
    a = _floats(rng, 2 * N)
    thread = np.arange(N) % 256
    first = np.where(thread % 3 == 0, a[:N], 0)
    second = np.where(thread % 32 < 5, a[::2], 0)
    return {"a": a, "out": np.zeros(2 * N, np.float32)}, {"out": np.r_[first, second]}


@sample(grid=4, block=256, counts=_loads(WARPS, 16 * WARPS) | _stores(WARPS, 16 * WARPS))
def quarter_warps(rng):
    a = _floats(rng, WARPS, 8, 4, 4)
    return {"a": a, "out": np.zeros((N, 4), np.float32)}, {"out": a.transpose(0, 2, 1, 3)}


# All lanes of the four warps use one index at a time: 32 stores, then 32 loads, 4 sectors each.
@sample(grid=2, block=64, counts={"local_requests": 4 * 64, "local_sectors": 4 * 64 * 4})
def local_traffic(rng):
    order = rng.permutation(32).astype(np.int32)
    i = np.arange(128, dtype=np.int64)
    slots = np.empty((128, 32), np.int64)
    slots[:, order] = np.arange(32) + i[:, None]
    total = np.zeros(128, np.int64)
    for k in range(32):
        total = (total * 3 + slots[:, order[31 - k] ^ 1]) % 2**32
    return {"order": order, "out": np.zeros(128, np.int32)}, {"out": total.astype(np.uint32)}


# One sector for the warp's one cell, four for a cell a lane, twice.
@sample(
    grid=4,
    block=256,
    counts=COALESCED_STORE | {"atomic_requests": 3 * WARPS, "atomic_sectors": (1 + 4 + 4) * WARPS},
)
def atomic_traffic(rng):
    one, each = np.zeros(8 * WARPS, np.int32), np.zeros(2 * N, np.int32)
    each[:] = rng.integers(0, 10, 2 * N)
    i = np.arange(N)
    folded = np.zeros((WARPS, 8), np.int32)
    folded[:, 0] = np.bitwise_xor.reduce(i.reshape(WARPS, 32), 1)
    expected = {
        "one": folded,
        "each": np.r_[each[:N] + i, np.maximum(each[N:], 5)],
        "old": each[N:].copy(),
    }
    return {"one": one, "each": each, "old": np.zeros(N, np.int32)}, expected


def _pairs_swapped(rng):
    a = rng.integers(-999, 999, (N, 4)).astype(np.int32)
    return {"a": a, "out": np.zeros_like(a)}, {"out": a[np.arange(N) ^ 1]}


@sample(grid=4, block=256, counts=_stores(WARPS, 16 * WARPS) | _copies(WARPS, 16 * WARPS))
def async_copy_cached(rng):
    return _pairs_swapped(rng)


@sample(grid=4, block=256, counts=_stores(WARPS, 16 * WARPS) | _copies(WARPS, 16 * WARPS))
def async_copy_bypass(rng):
    return _pairs_swapped(rng)


@sample(grid=2, block=128, counts=_stores(32, 16 * 32) | _copies(32, 16 * 32))
def async_copy_rows(rng):
    a = rng.integers(-999, 999, (128, 24, 4)).astype(np.int32)
    out = np.zeros((128, 8, 4), np.int32)
    return {"a": a, "out": out, "row_chunks": np.int32(24)}, {"out": a[:, np.arange(8) ^ 1]}


# Four warps: 4 bytes a lane are 4 sectors, 8 bytes 8; rows of 64 bytes give each lane its own.
@sample(block=128, counts=_stores(16, 4 * 16) | _copies(12, 4 * (4 + 8 + 32)))
def async_copy_narrow(rng):
    a = rng.integers(-999, 999, 512 + 16 * 128).astype(np.int32)
    expected = np.r_[a[:384], a[512::16]]
    return {"a": a, "out": np.zeros(512, np.int32)}, {"out": expected}


def _ldmatrix_rows(rng):
    lane = np.arange(32)
    a = rng.integers(0, 2**16, (32, 8, 8)).astype(np.uint16)
    tiles = a[lane % 16, lane // 16].reshape(4, 32, 2)
    return {"a": a, "out": np.zeros((32, 4, 2), np.uint16)}, {"out": tiles.swapaxes(0, 1)}


# 8 stores of 16 bytes a lane take 4 wavefronts each; ldmatrix.x4 takes 4 where no rows collide.
@sample(counts=_stores(1, 16) | {"shared_wavefronts": 8 * 4 + 4 * 8, "shared_conflicts": 4 * 7})
def matrix_loads_stride_64(rng):
    return _ldmatrix_rows(rng)


@sample(counts=_stores(1, 16) | {"shared_wavefronts": 8 * 4 + 4, "shared_conflicts": 0})
def matrix_loads_stride_72(rng):
    return _ldmatrix_rows(rng)


# 33 stores; then strides 1, 2, 8, 32, 33 and a broadcast; 8 bytes in two phases, free of
# conflicts; 16 bytes at a stride of 32 in four phases, two lanes a bank.
@sample(
    counts={
        "shared_wavefronts": 33 + (1 + 2 + 8 + 32 + 1 + 1) + 2 + 4 * 2,
        "shared_conflicts": (0 + 1 + 7 + 31 + 0 + 0) + 0 + 4,
    }
)
def shared_strides(rng):
    a = rng.integers(-999, 999, 33 * 32).astype(np.int32)
    t = np.arange(32)
    columns = [a[k * t] for k in (1, 2, 8, 32, 33)] + [a[t // 4]]
    columns += [a[6 * t], a[6 * t + 1], *(a[8 * t + 4 + k] for k in range(4))]
    return {"a": a, "out": np.zeros((32, 12), np.int32)}, {"out": np.stack(columns, 1)}
