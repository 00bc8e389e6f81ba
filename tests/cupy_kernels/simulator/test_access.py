"""Sectors and wavefronts against a computation lane by lane, and against a card's counters."""

import json
from pathlib import Path

import numpy as np
import pytest

from cupy_kernels.simulator.access import (
    count_moves,
    count_sectors,
    count_wavefronts,
    wavefronts_of,
)
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


def wavefronts(addresses: np.ndarray, lanes: np.ndarray, width: int, joins: bool) -> tuple:
    """Lane by lane: phases of 32, 16 or 8 lanes; a bank serves one word a wavefront."""
    at = dict(zip(lanes.tolist(), addresses.tolist(), strict=True))
    per_phase = 32 // max(1, width // 4)
    if joins and any(all(at[i] == at.get(i ^ x, at[i]) for i in at) for x in (1, 2)):
        per_phase = min(32, 2 * per_phase)
    costs = []
    for first in range(0, 32, per_phase):
        banks: dict[int, set] = {}
        for lane in range(first, first + per_phase):
            for word in range(max(1, width // 4)) if lane in at else ():
                banks.setdefault(((at[lane] >> 2) + word) % 32, set()).add((at[lane] >> 2) + word)
        costs.append(max((len(words) for words in banks.values()), default=0))
    return sum(costs), sum(map(bool, costs))


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masked", [False, True])
def test_wavefronts(width, kind, masked, joins):
    rng = np.random.default_rng(2)
    vector = lane_addresses(kind, width, rng) + 64
    active = rng.random((BLOCKS, 64)) < 0.6 if masked else np.ones((1, 64), bool)
    p, low = patterns(vector, active)
    full = np.broadcast_to(vector, GEOMETRY.shape).reshape(-1, 32)
    keep = np.broadcast_to(active, GEOMETRY.shape).reshape(-1, 32)
    want = [
        wavefronts(row[on], np.flatnonzero(on), width, joins)
        for row, on in zip(full, keep, strict=True)
    ]
    got = count_wavefronts(p, low & 127, width, GEOMETRY, joins)
    assert got == tuple(map(sum, zip(*want, strict=True)))


def measured(name):
    """Rows that an H200 under ncu filled in: one warp, one instruction each."""
    return json.loads((Path(__file__).parent / "h200_requests.json").read_text())[name]


@pytest.mark.parametrize("row", measured("shared"), ids=lambda row: f"{row[0]}{row[1]} {row[2]}")
def test_wavefronts_as_the_card_counted_them(row):
    kind, width, _, elements, active, counted, conflicts = row
    words = np.array([elements]) * (width // 4)
    wavefronts, ideal = wavefronts_of(words, np.array([active], bool), width, kind == "load")
    assert (wavefronts, wavefronts - ideal) == (counted, conflicts)


@pytest.mark.parametrize("row", measured("copies"), ids=lambda row: f"{row[0]} {row[1]}")
def test_moves_of_cp_async_as_the_card_counted_them(row):
    kind, name, source, target, counted = row
    geometry, book = Geometry(1, 32), AddressBook(Geometry(1, 32))
    (p, low), (q, at) = (book.root(np.array([chunks]) * 16) for chunks in (source, target))
    moves = count_moves(p, q, (low & 31, at & 31), geometry)
    if (kind, name) == ("cg", "src uniform"):
        # A known gap: one chunk copied to both halves of a sector moves twice on the card.
        assert (moves, counted) == (16, 32)
    else:
        assert (moves if kind == "cg" else count_sectors(p, low & 31, geometry)) == counted
