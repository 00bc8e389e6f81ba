"""Lesson 01: standard attention in three kernels, S and P in HBM."""

from collections.abc import Iterator

from autograder.candidate import Candidate
from autograder.exercise import Evidence, Exercise, Tier
from autograder.exercises.attention_cases import (
    Run,
    examine_attention,
    fixture_names,
    judge_forward,
)
from autograder.exercises.traffic_cases import Bounds
from autograder.fixtures import Fixture
from reference_numpy import io_complexity
from reference_numpy.machine import SRAM_BYTES, HbmArray, Machine


def set_up(fx: Fixture, sram_bytes: int = SRAM_BYTES) -> tuple[Machine, list[HbmArray], dict]:
    """Q, K, V, S, P and O in HBM, and the keywords of the call."""
    machine, N2 = Machine(sram_bytes), (len(fx.Q), len(fx.K))
    arrays = [machine.hbm(name, getattr(fx, name)) for name in "QKV"]
    arrays += [machine.empty("S", N2), machine.empty("P", N2), machine.empty("O", fx.Q.shape)]
    return machine, arrays, {"Br": fx.Br, "Bc": fx.Bc, "scale": fx.scale}


def set_up_small_sram(fx: Fixture) -> tuple[Machine, list[HbmArray], dict]:
    """The same on a chip just too small for K: what fits(K) says decides."""
    return set_up(fx, sram_bytes=fx.K.nbytes - 1)


def bounds(fx: Fixture, machine: Machine) -> Bounds:
    """K and V once if they stay on chip; if they do not fit, once per tile of queries."""
    resident = 2 * fx.K.nbytes <= machine.sram.capacity
    least = io_complexity.three_kernels(fx.problem)
    return Bounds(lower=least, upper=io_complexity.three_kernels(fx.problem, resident=resident))


def examine(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """All fixtures without a mask; the first again on a chip too small for K and V."""
    runs = [Run(name, set_up) for name in fixture_names(tier, causal=False)]
    runs.append(
        Run(
            "normal",
            set_up_small_sram,
            label="small_sram",
            invariant="works on a chip that cannot keep K and V",
        )
    )
    return examine_attention(candidate, runs, seed, judge=judge_forward, bounds=bounds)


EXERCISES = [
    Exercise(
        id="three_kernels",
        lesson=1,
        title="Attention in three kernels",
        signature="(machine, Q, K, V, S, P, O, *, Br, Bc, scale)",
        answer="reference_numpy.three_kernels:three_kernels",
        examine=examine,
        hints=(
            "A kernel is two nested loops at most: tiles of queries outside, tiles of keys inside.",
            "Load a tile of Q once and use it for all tiles of keys.",
            "Softmax needs a whole row at once: load S[rows], all of its columns.",
            "Subtract the row's maximum before exp; on `rising` e^300 overflows otherwise.",
            "P V is a sum over the tiles of keys: keep it on chip and store O once.",
        ),
    )
]
