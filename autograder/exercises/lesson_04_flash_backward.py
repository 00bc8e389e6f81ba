"""Lesson 04: the backward pass that recomputes P on chip."""

from collections.abc import Iterator

import numpy as np

from autograder.candidate import Candidate
from autograder.exercise import Evidence, Exercise, Tier
from autograder.exercises.attention_cases import (
    Run,
    examine_attention,
    fixture_names,
    judge_gradients,
)
from autograder.exercises.traffic_cases import Bounds, exactly
from autograder.fixtures import Fixture
from reference_numpy import io_complexity
from reference_numpy.io_complexity import Moved
from reference_numpy.machine import HbmArray, Machine
from reference_numpy.oracle import attention


def set_up(fx: Fixture) -> tuple[Machine, list[HbmArray], dict]:
    """The forward pass's arrays with the true O and LSE, and room for D and the gradients."""
    machine, Nq = Machine(fx.sram_bytes), len(fx.Q)
    O, LSE = attention(fx.Q, fx.K, fx.V, causal=fx.causal, scale=fx.scale)
    inputs = {"Q": fx.Q, "K": fx.K, "V": fx.V, "O": O, "dO": fx.dO, "LSE": LSE}
    arrays = [machine.hbm(name, array.astype(np.float32)) for name, array in inputs.items()]
    arrays.append(machine.empty("D", (Nq,)))
    shapes = {"dQ": fx.Q.shape, "dK": fx.K.shape, "dV": fx.V.shape}
    arrays += [machine.empty(name, shape) for name, shape in shapes.items()]
    return machine, arrays, {"Br": fx.Br, "Bc": fx.Bc, "scale": fx.scale, "causal": fx.causal}


def bounds(fx: Fixture, machine: Machine) -> Bounds:
    """The closed form; less is moved when D is computed inside the first pass over the queries."""
    io, first = io_complexity.flash_backward(fx.problem), fx.problem.first_visits
    visits = fx.problem.query_visits
    return exactly(
        io,
        O=Moved(read=first * fx.problem.d),
        dO=Moved(read=visits * fx.problem.d),
        D=Moved(read=visits - first, written=first),
    )


def examine(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """All fixtures and the traffic of each."""
    runs = [Run(name, set_up) for name in fixture_names(tier)]
    return examine_attention(candidate, runs, seed, judge=judge_gradients, bounds=bounds)


EXERCISES = [
    Exercise(
        id="flash_backward",
        lesson=4,
        title="The backward pass by recomputation",
        signature="(machine, Q, K, V, O, dO, LSE, D, dQ, dK, dV, *, Br, Bc, scale, causal)",
        answer="reference_numpy.flash_backward:flash_backward",
        examine=examine,
        hints=(
            "D first: one number a query, rowsum(dO ∘ O). It stands in for rowsum(P ∘ dP).",
            "P of a tile needs no maximum any more: P = e^(S − LSE), and its rows sum to 1.",
            "dV = Pᵀ dO and dP = dO Vᵀ; then dS = P ∘ (dP − D).",
            "S carries scale, so dQ = scale · dS K and dK = scale · dSᵀ Q. dV does not.",
            "dK and dV are complete when the inner loop ends. dQ of a tile of queries is not: read "
            "it back, add, store it again, except on the first pass, when HBM holds NaN.",
            "A query that sees no key has LSE = −∞ and only masked scores: shifted_exp gives 0.",
        ),
    )
]
