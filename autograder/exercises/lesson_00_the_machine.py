"""Lesson 00: predict the bytes of three first kernels, then write and meter them."""

from collections.abc import Callable, Iterator

import numpy as np

from autograder.candidate import Candidate, StudentFault
from autograder.exactness import FORWARD_FACTOR, FORWARD_FLOOR, Budget, errors
from autograder.exercise import Evidence, Exercise, Tier
from autograder.exercises.value_cases import examine_numbers, random_shapes
from autograder.location import never_stored, read_too_early, rows_wrong
from autograder.result import Finding, Points, TrafficFinding
from reference_numpy.first_kernels import predicted_bytes
from reference_numpy.machine import Machine

SHAPES = {
    "normal": (64, 96, 16),
    "ragged": (37, 50, 16),
    "one_row": (1, 130, 8),
    "one_column": (40, 1, 16),
}
LARGE = {"long": (1000, 64, 32)}
FP32_BYTES = 4


def _inputs(
    names: tuple[str, ...], shape: tuple[int, int], seed: int, spread: float, shift: float
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([seed, *shape])
    return {
        name: (spread * rng.standard_normal(shape) + shift).astype(np.float32) for name in names
    }


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def examine_kernel(
    candidate: Candidate,
    tier: Tier,
    seed: int,
    *,
    inputs: tuple[str, ...],
    scratch: tuple[str, ...],
    output: str,
    formula: Callable[..., np.ndarray],
    times: dict[str, tuple[int, int]],
) -> Iterator[Evidence]:
    """Every shape in turn: right numbers, right bytes.

    `times` gives, for each array, how often it is read and written as a whole.
    """
    shapes = SHAPES | LARGE if tier is Tier.FULL else SHAPES
    cases = [(name, shape, 1.0, 0.0) for name, shape in shapes.items()]
    cases.append(("large_values", (20, 64, 8), 60.0, 0.0))  # e^200 overflows
    cases.append(("deep_negative", (20, 64, 8), 1.0, -200.0))  # e^−200 underflows
    for fixture, (N, n, B), spread, shift in cases:
        data = _inputs(inputs, (N, n), seed, spread, shift)
        machine = Machine(sram_bytes=3 * FP32_BYTES * B * (n + 2))
        arrays = [machine.hbm(name, x) for name, x in data.items()]
        arrays += [machine.empty(name, (N,)) for name in scratch]
        arrays.append(machine.empty(output, (N, n)))
        machine.seal()
        try:
            candidate.on_machine(machine, arrays, {"B": B})
            machine.sram.settle()
        except (StudentFault, MemoryError) as fault:
            if getattr(fault, "fatal", False):
                raise
            yield Finding("equals the formula in float64", False, fixture, detail=str(fault))
            continue
        yield _judge(fixture, machine, output, formula, data)
        yield from _judge_traffic(fixture, machine, times, N, n)


def _judge(
    fixture: str, machine: Machine, output: str, formula, data: dict[str, np.ndarray]
) -> Finding:
    got = machine.to_host(output)
    truth = formula(*(x.astype(np.float64) for x in data.values()))
    budget = Budget.of(truth, formula(*data.values()), factor=FORWARD_FACTOR, floor=FORWARD_FLOOR)
    if budget.accepts(got):
        return Finding("equals the formula in float64", True, fixture)
    cause = never_stored(machine, output, len(got)) or read_too_early(machine)
    if not cause and not np.isfinite(got).all():
        cause = "exp overflowed: subtract the maximum of the row first"
    bad = np.flatnonzero(errors(got, truth).max(axis=1) > budget.allowed)
    return Finding(
        "equals the formula in float64",
        False,
        fixture,
        detail=rows_wrong(bad, len(got)),
        cause=cause,
    )


def _judge_traffic(
    fixture: str, machine: Machine, times: dict[str, tuple[int, int]], N: int, n: int
) -> Iterator[TrafficFinding]:
    for array, moved in machine.traffic.arrays.items():
        elements = N if array in ("M", "L") else N * n
        for direction, count in zip(("read", "written"), times[array], strict=True):
            measured, exact = getattr(moved, direction), FP32_BYTES * elements * count
            if measured or exact:
                ratio = measured / (FP32_BYTES * elements)
                cause = (
                    ""
                    if measured == exact
                    else f"{array} is {direction} {ratio:.2g} times, not {count}"
                )
                yield TrafficFinding(array, direction, measured, exact, exact, fixture, cause)


def examine_add(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """Z = X + Y: X and Y read once, Z written once."""
    return examine_kernel(
        candidate,
        tier,
        seed,
        inputs=("X", "Y"),
        scratch=(),
        output="Z",
        formula=lambda x, y: x + y,
        times={"X": (1, 0), "Y": (1, 0), "Z": (0, 1)},
    )


def examine_softmax_one(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """Softmax in one kernel: X read once, Y written once."""
    return examine_kernel(
        candidate,
        tier,
        seed,
        inputs=("X",),
        scratch=(),
        output="Y",
        formula=_softmax,
        times={"X": (1, 0), "Y": (0, 1)},
    )


def examine_softmax_three(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """Softmax in three kernels: X read three times, M and L through HBM."""
    return examine_kernel(
        candidate,
        tier,
        seed,
        inputs=("X",),
        scratch=("M", "L"),
        output="Y",
        formula=_softmax,
        times={"X": (3, 0), "M": (2, 1), "L": (1, 1), "Y": (0, 1)},
    )


def prediction_cause(case: tuple, got: float, want: float) -> str:
    """The likely mistake behind a wrong number of bytes."""
    if got * FP32_BYTES == want:
        return "elements were counted, bytes are asked for"
    if got == want * FP32_BYTES:
        return "the four bytes of a number are counted twice"
    return "half of it is missing" if got * 2 == want else ""


def examine_prediction(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """The three closed forms on shapes that tell N from n."""
    return examine_numbers(
        candidate,
        [(1000, 64), (1, 7), *random_shapes(seed, low=(2, 2), high=(5000, 5000))],
        predicted_bytes,
        invariants={
            "elementwise_add": "predicts the bytes of the add",
            "softmax_one_kernel": "predicts the bytes of softmax in one kernel",
            "softmax_three_kernels": "predicts the bytes of softmax in three kernels",
        },
        cause=prediction_cause,
    )


EXERCISES = [
    Exercise(
        id="predicted_bytes",
        lesson=0,
        title="Predict the bytes of three kernels",
        signature="(N, n) -> {kernel name: bytes}",
        answer="reference_numpy.first_kernels:predicted_bytes",
        examine=examine_prediction,
        points=Points(exactness=6, traffic=0),
        hints=(
            "Count elements read and elements written, then multiply by 4 bytes.",
            "Three kernels read X three times. What else has to cross HBM between them?",
            "M and L have N elements each. M is written once, then read by two kernels.",
        ),
    ),
    Exercise(
        id="elementwise_add",
        lesson=0,
        title="Z = X + Y",
        signature="(machine, X, Y, Z, *, B)",
        answer="reference_numpy.first_kernels:elementwise_add",
        examine=examine_add,
        hints=("X[rows] loads a tile, Z[rows] = ... stores one.",),
    ),
    Exercise(
        id="softmax_one_kernel",
        lesson=0,
        title="Row softmax in one kernel",
        signature="(machine, X, Y, *, B)",
        answer="reference_numpy.first_kernels:softmax_one_kernel",
        examine=examine_softmax_one,
        hints=(
            "Load the tile once into a variable: every X[rows] is paid for.",
            "Subtract each row's maximum before exp.",
        ),
    ),
    Exercise(
        id="softmax_three_kernels",
        lesson=0,
        title="Row softmax in three kernels",
        signature="(machine, X, M, L, Y, *, B)",
        answer="reference_numpy.first_kernels:softmax_three_kernels",
        examine=examine_softmax_three,
        hints=(
            "Three loops one after the other. A kernel starts with an empty chip.",
            "First M = rowmax(X), then L = rowsum(e^(X − M)), then Y = e^(X − M) / L.",
            "M[rows][:, None] turns a loaded tile of N numbers into a column.",
        ),
    ),
]
