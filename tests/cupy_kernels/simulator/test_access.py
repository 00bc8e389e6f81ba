"""Sectors and wavefronts against a computation lane by lane."""

import numpy as np
import pytest

from cupy_kernels.simulator.access import count_sectors, count_wavefronts
from cupy_kernels.simulator.addresses import AddressBook, Geometry

BLOCKS, WARPS = 2, 2
GEOMETRY = Geometry(BLOCKS, 32 * WARPS)


def lane_addresses(kind: str, width: int, rng) -> np.ndarray:
    lanes = np.arange(64)[None]
    vectors = {
        "coalesced": lanes * width,
        "strided": lanes * 64 * width,
        "uniform": np.zeros((1, 1), np.int64),
        "by block": np.arange(BLOCKS)[:, None] * 4096,
        "broadcast rows": lanes // 8 * 256,
        "random": rng.integers(0, 4096 // width, (BLOCKS, 64)) * width,
    }
    return vectors[kind].astype(np.int64)


KINDS = ["coalesced", "strided", "uniform", "by block", "broadcast rows", "random"]


def warps_of(vector, active):
    full = np.broadcast_to(vector, GEOMETRY.shape).reshape(BLOCKS * WARPS, 32)
    keep = np.broadcast_to(active, GEOMETRY.shape).reshape(BLOCKS * WARPS, 32)
    return [row[on] for row, on in zip(full, keep, strict=True)]


def patterns(vector, active):
    book = AddressBook(GEOMETRY)
    p, low = book.root(vector)
    if active.all():
        return p, low
    q, more = book.under(p, book.mask(active))
    return q, low + more


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("start", [0, 16, 4096 + 112])
def test_sectors(width, kind, masked, start):
    rng = np.random.default_rng(1)
    vector = lane_addresses(kind, width, rng) + start
    active = rng.random((BLOCKS, 64)) < 0.6 if masked else np.ones((1, 64), bool)
    p, low = patterns(vector, active)
    want = sum(len(np.unique(warp >> 5)) for warp in warps_of(vector, active))
    assert count_sectors(p, low & 31, GEOMETRY) == want


def wavefronts(addresses: np.ndarray, lanes: np.ndarray, width: int) -> int:
    """Lane by lane: phases of 32, 16 or 8 lanes; a bank serves one word a wavefront."""
    per_phase = 32 // max(1, width // 4)
    total = 0
    for first in range(0, 32, per_phase):
        banks: dict[int, set] = {}
        for address, lane in zip(addresses, lanes, strict=True):
            if first <= lane < first + per_phase:
                for word in range(address >> 2, (address + max(width, 4) - 1 >> 2) + 1):
                    if width >= 4 or word == address >> 2:
                        banks.setdefault(word % 32, set()).add(word)
        total += max((len(words) for words in banks.values()), default=0)
    return total


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masked", [False, True])
def test_wavefronts(width, kind, masked):
    rng = np.random.default_rng(2)
    vector = lane_addresses(kind, width, rng) + 64
    active = rng.random((BLOCKS, 64)) < 0.6 if masked else np.ones((1, 64), bool)
    p, low = patterns(vector, active)
    full = np.broadcast_to(vector, GEOMETRY.shape).reshape(-1, 32)
    keep = np.broadcast_to(active, GEOMETRY.shape).reshape(-1, 32)
    want = sum(
        wavefronts(row[on], np.flatnonzero(on), width) for row, on in zip(full, keep, strict=True)
    )
    assert count_wavefronts(p, low & 127, width, GEOMETRY) == want
