"""Blocks of one launch that behave differently: no false alarm, and the guilty block is named."""

from pathlib import Path

import numpy as np
import pytest

from cupy_kernels.simulator import Fault

from .correct import Launch

SOURCE = Path(__file__).parent / "kernels_that_differ.cu"
TEXT = SOURCE.read_text()
BLOCKS = 300  # several waves of blocks


def _numbers(*shape):
    return np.random.default_rng(1).integers(-99, 99, shape).astype(np.int32)


def turns_a_block():
    turns = np.arange(BLOCKS, dtype=np.int32) % 7
    rounds = turns * (turns - 1) // 2
    expected = rounds[:, None] * np.arange(31, -1, -1)
    out = np.zeros((BLOCKS, 32), np.int32)
    return Launch((BLOCKS,), (32,), {"turns": turns, "out": out}, {"out": expected})


def barrier_in_odd_blocks():
    a = _numbers(BLOCKS, 64)
    expected = np.where(np.arange(BLOCKS)[:, None] % 2, a[:, ::-1], a)
    return Launch((BLOCKS,), (64,), {"a": a, "out": np.zeros_like(a)}, {"out": expected})


def shuffles_by_warp():
    a = _numbers(20, 4, 32)
    x = a.copy()
    x[:, 0] = a[:, 0][:, np.arange(32) ^ 1]
    down = np.minimum(np.arange(32) + 1, 31)
    for warp, turns in ((1, 1), (2, 2)):
        for _ in range(turns):
            x[:, warp] += x[:, warp][:, down]
    x[..., :8] += x[..., np.arange(8) ^ 4].copy()
    return Launch((20,), (128,), {"a": a, "out": np.zeros_like(a)}, {"out": x})


def warps_leave():
    a = _numbers(BLOCKS, 128)
    expected = np.zeros_like(a)
    for block, row in enumerate(a):
        kept = 32 * (1 + block % 4)
        expected[block, :kept] = row[:kept][::-1]
    return Launch((BLOCKS,), (128,), {"a": a, "out": np.zeros_like(a)}, {"out": expected})


def lock_in_turn():
    arguments = {"lock": np.zeros(1, np.int32), "total": np.zeros(1, np.int32)}
    return Launch((2,), (16,), arguments, {"lock": [0], "total": [32]})


def guide_atomic_add():
    a = _numbers(4, 32).astype(np.float64)
    arguments = {"a": a, "sum": np.zeros(1, np.float64)}
    return Launch((4,), (32,), arguments, {"sum": [a.sum()]})


CORRECT = [turns_a_block, barrier_in_odd_blocks, shuffles_by_warp]
CORRECT += [warps_leave, lock_in_turn, guide_atomic_add]


@pytest.mark.parametrize("make", CORRECT)
def test_no_report(make):
    launch = make()
    counts = launch.run(TEXT, SOURCE.name, make.__name__)
    assert launch.wrong() == []
    assert counts.warnings == []


GUILTY = {
    "one_block_uninitialised": ("uninitialised", 32, "tile"),
    "one_block_races": ("race", 64, "tile"),
    "one_block_too_far": ("out of bounds", 32, "a"),
    "reads_far_back": ("race", 32, "out"),
}


@pytest.mark.parametrize("guilty", [1, 137, BLOCKS - 1])
@pytest.mark.parametrize("kernel", GUILTY)
def test_the_guilty_block_is_named(kernel, guilty):
    kind, threads, array = GUILTY[kernel]
    a = _numbers(BLOCKS, threads)
    arguments = {"a": a, "out": np.zeros_like(a), "guilty": np.int32(guilty)}
    with pytest.raises(Fault) as raised:
        Launch((BLOCKS,), (threads,), arguments, {}).run(TEXT, SOURCE.name, kernel)
    fault = raised.value
    assert fault.kind == kind, str(fault)
    assert fault.array == array
    assert "// BUG" in TEXT.splitlines()[fault.place.line - 1], str(fault)
    named = {fault.block, *(party.block for party in fault.parties)}
    assert (guilty, 0, 0) in named, str(fault)
