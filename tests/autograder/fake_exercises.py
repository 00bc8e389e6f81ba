"""Three small exercises that stand in for the course's, so that the machinery is tested by itself.

`double` runs on the machine (Y = 2X, every byte once), `total` returns a number, `guess` is a
value. Their errors are judged against a budget, as in the real ones.
"""

from collections.abc import Iterator

import numpy as np

from autograder.candidate import Candidate, StudentFault
from autograder.exercise import Exercise, Tier
from autograder.result import Finding, Points, TrafficFinding
from reference_numpy.machine import Machine
from reference_numpy.tiling import tiles

ROWS = {"normal": 40, "ragged": 37}


def double(machine, X, Y, *, B):
    """Y = 2X, one tile of B rows at a time."""
    for rows in tiles(X.shape[0], B):
        Y[rows] = 2 * X[rows]


def total(x):
    """The sum of x."""
    return float(np.sum(x))


guess = 12


def examine_double(candidate: Candidate, tier: Tier, seed: int) -> Iterator:
    random = np.random.default_rng(seed)
    for fixture, N in ROWS.items():
        x = random.normal(size=(N, 8)).astype(np.float32)
        machine = Machine(sram_bytes=16 * 8 * 4 * 2)
        X, Y = machine.hbm("X", x), machine.empty("Y", x.shape)
        try:
            candidate.on_machine(machine, [X, Y], {"B": 16})
        except StudentFault as fault:
            if fault.fatal:
                raise
            yield Finding("runs", False, fixture, detail=str(fault))
            continue
        yield Finding("runs", True, fixture)
        y = machine.to_host("Y")
        yield Finding("finite", bool(np.isfinite(y).all()), fixture)
        error = float(np.nan_to_num(np.abs(y - 2.0 * x), nan=np.inf).max())
        yield Finding("doubled", error <= 1e-6, fixture, "rows 0:16", "", error, 1e-6)
        for array, direction in (("X", "read"), ("Y", "written")):
            measured = getattr(machine.traffic[array], direction)
            yield TrafficFinding(array, direction, measured, x.nbytes, x.nbytes, fixture)


def examine_total(candidate: Candidate, tier: Tier, seed: int) -> Iterator:
    random = np.random.default_rng(seed)
    for fixture in ("normal", "large"):
        x = random.normal(size=100) * (1e6 if fixture == "large" else 1)
        error = abs(candidate.call(x) - x.sum())
        yield Finding("the sum", bool(error <= 1e-6), fixture, "", "", float(error), 1e-6)


def examine_guess(candidate: Candidate, tier: Tier, seed: int) -> Iterator:
    yield Finding("the number of bytes", candidate.call() == 12, "normal")


HOME = "tests.autograder.fake_exercises"
EXERCISES = (
    Exercise(
        "double",
        90,
        "Twice as much",
        "double(machine, X, Y, *, B)",
        f"{HOME}:double",
        examine_double,
        ("Load a tile.", "Store twice the tile."),
    ),
    Exercise(
        "total",
        90,
        "The sum",
        "total(x)",
        f"{HOME}:total",
        examine_total,
        ("np.sum",),
        Points(10, 0),
    ),
    Exercise(
        "guess",
        91,
        "Guess the bytes",
        "guess",
        "tests.autograder.nowhere:guess",
        examine_guess,
        (),
        Points(2, 0),
        is_value=True,
    ),
)
FAKES = {exercise.id: exercise for exercise in EXERCISES}
