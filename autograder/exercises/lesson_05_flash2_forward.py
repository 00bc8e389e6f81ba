"""Lesson 05: FlashAttention-2's loops, and how its warps share a tile."""

from collections.abc import Iterator

from autograder.candidate import Candidate
from autograder.exercise import Evidence, Exercise, Tier
from autograder.exercises.attention_cases import (
    Run,
    examine_attention,
    fixture_names,
    judge_forward,
)
from autograder.exercises.traffic_cases import FP32_BYTES, Bounds, exactly
from autograder.exercises.value_cases import examine_numbers, random_shapes
from autograder.fixtures import Fixture
from autograder.result import Points
from reference_numpy import io_complexity
from reference_numpy.machine import HbmArray, Machine
from reference_numpy.warp_split import shared_memory_elements


def set_up(fx: Fixture) -> tuple[Machine, list[HbmArray], dict]:
    """Q, K, V, O and LSE in HBM, and the keywords of the call."""
    machine = Machine(fx.sram_bytes)
    arrays = [machine.hbm(name, getattr(fx, name)) for name in "QKV"]
    arrays += [machine.empty("O", fx.Q.shape), machine.empty("LSE", fx.Q.shape[:1])]
    return machine, arrays, {"Br": fx.Br, "Bc": fx.Bc, "scale": fx.scale, "causal": fx.causal}


def bounds(fx: Fixture, machine: Machine) -> Bounds:
    """Exactly the closed form."""
    return exactly(io_complexity.flash2_forward(fx.problem))


def examine_forward(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """All fixtures, the LSE over all of them, and the traffic of each."""
    runs = [Run(name, set_up) for name in fixture_names(tier)]
    return examine_attention(candidate, runs, seed, judge=judge_forward, bounds=bounds)


def warp_split_cause(case: tuple, got: float, want: float) -> str:
    """The likely mistake behind a wrong number of elements."""
    warps = case[3]
    if warps > 1 and got * warps == want:
        return "every warp does this: the factor warps is missing"
    return "bytes were counted, elements are asked for" if got == FP32_BYTES * want else ""


def examine_warp_split(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """Both splits on several tiles; uneven ones tell Br from Bc."""
    cases = [
        (64, 64, 64, 4),
        (128, 64, 64, 4),
        (64, 128, 128, 8),
        (128, 32, 80, 2),
        (48, 16, 40, 3),
    ]
    cases += random_shapes(seed, low=(16, 16, 16, 1), high=(256, 256, 256, 16))
    return examine_numbers(
        candidate,
        cases,
        shared_memory_elements,
        invariants={
            "split_k": "split K: Q for every warp; every warp's m, l and o written and read back",
            "split_q": "split Q: K and V for every warp, nothing exchanged",
        },
        cause=warp_split_cause,
    )


EXERCISES = [
    Exercise(
        id="flash2_forward",
        lesson=5,
        title="FlashAttention-2: Q outside, one division at the end",
        signature="(machine, Q, K, V, O, LSE, *, Br, Bc, scale, causal)",
        answer="reference_numpy.flash2_forward:flash2_forward",
        examine=examine_forward,
        hints=(
            "Take your inner loop of lesson 03 and drop every division.",
            "Keep o = Σ e^(s − m)·v and l = Σ e^(s − m) on chip; both shrink by e^(m − m_new) when "
            "the maximum grows.",
            "Divide once, after the last tile: O = o / l. Store O and LSE there, once.",
            "With a causal mask, stop at the first tile of keys that these queries cannot see: "
            "all later ones are hidden too.",
            "A query that sees no key has l = 0: divide_rows gives 0 and log_sum_exp gives −∞.",
        ),
    ),
    Exercise(
        id="shared_memory_elements",
        lesson=5,
        title="Split K or split Q: what crosses shared memory",
        signature="(Br, Bc, d, warps) -> {'split_k': elements, 'split_q': elements}",
        answer="reference_numpy.warp_split:shared_memory_elements",
        examine=examine_warp_split,
        points=Points(exactness=6, traffic=0),
        hints=(
            "Count per tile: what every warp reads, then what the warps hand to one another. What "
            "the outer loop holds is in registers already and costs nothing.",
            "Split Q: every warp reads the whole tile of K and of V.",
            "Split K: every warp reads the whole tile of Q. Then every warp writes o (Br×d), "
            "m (Br) and l (Br), and all of that is read once more to be merged.",
        ),
    ),
]
