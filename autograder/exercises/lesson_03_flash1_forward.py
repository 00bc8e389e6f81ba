"""Lesson 03: FlashAttention-1, the tiled forward pass with K and V in the outer loop."""

from collections.abc import Iterator

from autograder.candidate import Candidate
from autograder.exercise import Evidence, Exercise, Tier
from autograder.exercises.attention_cases import (
    Run,
    examine_attention,
    fixture_names,
    judge_forward,
)
from autograder.exercises.traffic_cases import Bounds, exactly
from autograder.fixtures import Fixture
from reference_numpy import io_complexity
from reference_numpy.io_complexity import Moved
from reference_numpy.machine import HbmArray, Machine


def set_up(fx: Fixture) -> tuple[Machine, list[HbmArray], dict]:
    """Q, K, V, O, l, m and LSE in HBM, and the keywords of the call."""
    machine, Nq = Machine(fx.sram_bytes), len(fx.Q)
    arrays = [machine.hbm(name, getattr(fx, name)) for name in "QKV"]
    arrays.append(machine.empty("O", fx.Q.shape))
    arrays += [machine.empty(name, (Nq,)) for name in ("l", "m", "LSE")]
    return machine, arrays, {"Br": fx.Br, "Bc": fx.Bc, "scale": fx.scale, "causal": fx.causal}


def bounds(fx: Fixture, machine: Machine) -> Bounds:
    """Exactly the closed form, but nobody needs l and m after the last tile."""
    io, first = io_complexity.flash1_forward(fx.problem), fx.problem.first_visits
    statistic = Moved(read=io["l"].read, written=io["l"].written - first)
    return exactly(io, l=statistic, m=statistic)


def examine(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """All fixtures, the LSE over all of them, and the traffic of each."""
    runs = [Run(name, set_up) for name in fixture_names(tier)]
    return examine_attention(candidate, runs, seed, judge=judge_forward, bounds=bounds)


EXERCISES = [
    Exercise(
        id="flash1_forward",
        lesson=3,
        title="FlashAttention-1: the tiled forward pass",
        signature="(machine, Q, K, V, O, l, m, LSE, *, Br, Bc, scale, causal)",
        answer="reference_numpy.flash1_forward:flash1_forward",
        examine=examine,
        hints=(
            "Write it for one tile of keys first: with a single pass it is plain softmax.",
            "O in HBM is already divided by l. Before new keys can join, multiply it by l again.",
            "Old and new part both move to m_new = max(m, m_tile): the old one by e^(m − m_new), "
            "the tile's by e^(m_tile − m_new).",
            "O ← (l·e^(m − m_new)·O + e^(m_tile − m_new)·P V) / l_new, where "
            "l_new = l·e^(m − m_new) + l_tile·e^(m_tile − m_new).",
            "On the first pass there is nothing to read: O, l and m in HBM hold NaN.",
            "LSE = m + ln l is final after the last tile of keys that these queries see. With a "
            "causal mask that is not the last tile there is.",
        ),
    )
]
