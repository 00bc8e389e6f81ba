"""Fragments and tensor cores: where each matrix element sits, and what mma makes of it."""

import numpy as np

from .case import sample
from .exact import BF16, E4M3, E5M2, F16, F32, converted

LANE = np.arange(32)
GROUP, CORNER = LANE // 4, LANE % 4  # the row (or column) and the column pair of a lane


def _lane_pairs(tiles, trans):
    """One register a lane from 8×8 tiles (..., 8, 8): two neighbours of row g, or of column g."""
    tiles = np.swapaxes(tiles, -1, -2) if trans else tiles
    return tiles[..., GROUP[:, None], 2 * CORNER[:, None] + np.arange(2)]


@sample()
def matrix_loads(rng):
    a = rng.integers(0, 2**16, (32, 8)).astype(np.uint16)
    tiles = a[LANE * 5 % 32].reshape(4, 8, 8)
    columns = [
        _lane_pairs(tiles[j], trans)
        for count in (1, 2, 4)
        for trans in (False, True)
        for j in range(count)
    ]
    out = np.zeros((32, 14, 2), np.uint16)
    return {"a": a, "out": out}, {"out": np.stack(columns, 1)}


@sample()
def matrix_stores(rng):
    a = rng.integers(0, 2**16, (32, 4, 2)).astype(np.uint16)
    expected = np.zeros((72, 8), np.uint16)
    plan = [  # first register, tiles, transposed, chunk of each row address
        (0, 4, False, LANE * 3 % 32),
        (0, 2, False, 32 + LANE % 16),
        (2, 2, True, 48 + LANE * 7 % 16),
        (3, 1, True, 64 + LANE % 8),
    ]
    for register, count, trans, chunk in plan:
        for j in range(count):
            tile = a[:, register + j].reshape(8, 8)
            expected[chunk[8 * j : 8 * j + 8]] = tile.T if trans else tile
    return {"a": a, "out": np.zeros((72, 8), np.uint16)}, {"out": expected}


def _a_fragments(A, elements, registers=4):
    """(products, 16, K) to (products, 32 lanes, registers, elements)."""
    k = np.arange(registers)[:, None]
    rows = GROUP[:, None, None] + 8 * (k & 1)
    columns = elements * CORNER[:, None, None] + 4 * elements * (k >> 1) + np.arange(elements)
    return np.ascontiguousarray(A[:, rows, columns])


def _b_fragments(B, elements, registers=2):
    """(products, K, 8) to (products, 32 lanes, registers, elements)."""
    k = np.arange(registers)[:, None]
    rows = elements * CORNER[:, None, None] + 4 * elements * k + np.arange(elements)
    return np.ascontiguousarray(B[:, rows, GROUP[:, None, None]])


def _c_fragments(C):
    """(products, 16, 8) to (products, 32 lanes, 4)."""
    k = np.arange(4)
    return np.ascontiguousarray(C[:, GROUP[:, None] + 8 * (k >> 1), 2 * CORNER[:, None] + (k & 1)])


def _factors(rng, K, limit):
    """Whole numbers: A one-hot, B one-hot, A a selection of rows, then all of them random."""
    A, B = (rng.integers(-limit, limit + 1, (16, *shape)) for shape in ((16, K), (K, 8)))
    A[:4], B[4:8] = 0, 0
    for p in range(4):
        A[p, rng.integers(16), rng.integers(K)] = 1
        B[4 + p, rng.integers(K), rng.integers(8)] = 1
    A[8:12] = np.eye(K, dtype=int)[rng.integers(0, K, (4, 16))]
    return A, B, rng.integers(-limit, limit + 1, (16, 16, 8))


def _codes(values, target):
    table = np.arange(values.min(), values.max() + 1)
    return np.ascontiguousarray(converted(table, target)[values - values.min()])


def _float_product(rng, K, limit, target, a_registers=4, b_registers=2):
    """Arguments and truth of D = A B + C; whole numbers make every order of summation exact."""
    A, B, C = _factors(rng, K, limit)
    elements = K // (4 * b_registers)
    arguments = {
        "A": _codes(_a_fragments(A, elements, a_registers), target),
        "B": _codes(_b_fragments(B, elements, b_registers), target),
        "C": _c_fragments(C).astype(np.float32),
        "D": np.zeros((16, 32, 4), np.float32),
    }
    return arguments, {"D": _c_fragments(A @ B + C)}


@sample(grid=16)
def mma_f16(rng):
    return _float_product(rng, 16, 60, F16)


@sample(grid=16)
def mma_bf16(rng):
    return _float_product(rng, 16, 60, BF16)


@sample(grid=16)
def mma_tf32(rng):
    return _float_product(rng, 8, 60, F32)


@sample(grid=16)
def mma_e4m3(rng):
    return _float_product(rng, 32, 8, E4M3)


@sample(grid=16)
def mma_e5m2(rng):
    return _float_product(rng, 32, 4, E5M2)


@sample(grid=16)
def mma_k8(rng):
    return _float_product(rng, 8, 60, F16, a_registers=2, b_registers=1)


@sample(grid=16)
def mma_f16_accumulator(rng):
    arguments, expected = _float_product(rng, 16, 4, F16)
    as_half = {name: arguments[name].astype(np.float16) for name in ("C", "D")}
    return arguments | as_half, expected


@sample(grid=16)
def mma_s8(rng):
    A, B, C = _factors(rng, 32, 127)
    C *= 10**6
    arguments = {
        "A": _a_fragments(A, 4).astype(np.int8),
        "B": _b_fragments(B, 4).astype(np.int8),
        "C": _c_fragments(C).astype(np.int32),
        "D": np.zeros((16, 32, 4), np.int32),
    }
    return arguments, {"D": _c_fragments(A @ B + C)}
