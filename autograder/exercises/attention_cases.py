"""How an attention kernel on the model machine is examined: fixture by fixture, bytes included."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from autograder import diagnosis
from autograder.candidate import Candidate, StudentFault
from autograder.exactness import FORWARD_FACTOR, FORWARD_FLOOR, GRADIENT_FACTOR, Budget, errors
from autograder.exercise import Evidence, Tier
from autograder.fixtures import FULL_ONLY, QUICK, Fixture, fixture
from autograder.result import Finding, TrafficFinding
from reference_numpy.io_complexity import IO, Moved
from reference_numpy.machine import HbmArray, Machine
from reference_numpy.oracle import (
    EPS_FP32,
    attention,
    attention_gradients,
    gradient_floors,
    lse_floor,
    naive_backward,
    naive_forward,
)
from reference_numpy.tiling import tiles

FP32_BYTES = 4
LSE_INVARIANT = "the LSE of every query is saved: m + ln l"


@dataclass(frozen=True)
class Bounds:
    """Closed forms for one run, in elements: what each array moves at least and at most."""

    lower: IO
    upper: IO


def exactly(io: IO, **lower: Moved) -> Bounds:
    """Bounds that meet, except for the arrays named in `lower`, which may move less."""
    return Bounds(lower=io | lower, upper=io)


def fixture_names(tier: Tier, *, causal: bool = True) -> list[str]:
    """Names of the fixtures that a tier tries, without the causal ones if `causal` is False."""
    recipes = QUICK | FULL_ONLY if tier is Tier.FULL else QUICK
    return [name for name, recipe in recipes.items() if causal or not recipe.causal]


def judge_traffic(fx: Fixture, machine: Machine, bounds: Bounds) -> Iterator[TrafficFinding]:
    """One finding for every array and direction that moves, or should, anything."""
    for array, moved in machine.traffic.arrays.items():
        lower, upper = bounds.lower.get(array, Moved()), bounds.upper.get(array, Moved())
        for direction in ("read", "written"):
            measured = getattr(moved, direction)
            least = FP32_BYTES * getattr(lower, direction)
            most = FP32_BYTES * getattr(upper, direction)
            if measured or most:
                cause = _traffic_cause(array, direction, measured, least, most)
                yield TrafficFinding(array, direction, measured, least, most, fx.name, cause)


def _traffic_cause(array: str, direction: str, measured: int, least: int, most: int) -> str:
    if least <= measured <= most:
        return ""
    if most == 0:
        return f"{array} is not {direction} by this algorithm at all"
    if measured < least:
        kept = "kept on chip where it does not fit" if direction == "read" else "not all stored"
        return f"{array} is {kept}, or part of the work is left out"
    how_often = f"{array} is {direction} {measured / most:.2f} times as often as it needs to be"
    return how_often + (
        ": is a load inside a loop it does not depend on?" if direction == "read" else ""
    )


def locate(name: str, got: np.ndarray, budget: Budget, tile: int) -> str:
    """Which rows are wrong, in which tile the worst one lies, and by how much."""
    if got.shape != budget.truth.shape:
        return f"{name} has shape {got.shape}, it should be {budget.truth.shape}"
    by_row = errors(got, budget.truth).reshape(len(got), -1).max(axis=1)
    bad = np.flatnonzero(by_row > budget.allowed)
    worst = int(bad[np.argmax(by_row[bad])])
    size = "not finite" if np.isinf(by_row[worst]) else f"{by_row[worst]:.1e}"
    return (
        f"{name}: {len(bad)} of {len(got)} rows wrong ({_ranges(bad)}); worst in row {worst}, "
        f"tile {worst // tile}: error {size}, allowed {budget.allowed:.1e}"
    )


def _ranges(rows: np.ndarray) -> str:
    runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    shown = [f"{run[0]}:{run[-1] + 1}" for run in runs[:3]]
    return ", ".join(shown) + (", …" if len(runs) > 3 else "")


def never_stored(machine: Machine, array: str, rows: int) -> str:
    """Says which rows of `array` no store ever reached, or ""."""
    missing = np.ones(rows, bool)
    for event in machine.events:
        if event.kind == "store" and event.array == array:
            missing[slice(*event.bounds[0])] = False
    return f"{array}[{_ranges(np.flatnonzero(missing))}] is never stored" if missing.any() else ""


def weights_off(fx: Fixture, O: np.ndarray) -> str:
    """For V = I, where O is P: the tiles of keys whose weights are wrong, or ""."""
    if not np.array_equal(fx.V, np.eye(len(fx.V), dtype=fx.V.dtype)):
        return ""
    truth, _ = attention(fx.Q, fx.K, fx.V, causal=fx.causal, scale=fx.scale)
    wrong = errors(O, truth).max(axis=0) > 1e-5
    bad = [j for j, cols in enumerate(tiles(len(fx.K), fx.Bc)) if wrong[cols].any()]
    return f"the weights of key tiles {bad} are off" if bad else ""


class ForwardJudge:
    """Judges O on each fixture, and the LSE over all of them."""

    def __init__(self):
        self.lse_findings: list[Finding] = []

    def judge(self, fx: Fixture, machine: Machine) -> Iterator[Finding]:
        """Findings for O; the LSE is kept for `judge_lse`."""
        shape = {"causal": fx.causal, "scale": fx.scale}
        truth_O, truth_LSE = attention(fx.Q, fx.K, fx.V, **shape)
        naive_O, naive_LSE = naive_forward(fx.Q, fx.K, fx.V, **shape)
        budget = Budget.of(truth_O, naive_O, factor=FORWARD_FACTOR, floor=FORWARD_FLOOR)
        O = machine.to_host("O")
        yield compare(
            fx,
            "O",
            O,
            budget,
            fx.Br,
            invariant=fx.invariant,
            cause=lambda: (
                never_stored(machine, "O", len(O))
                or diagnosis.forward_cause(fx, O)
                or weights_off(fx, O)
            ),
        )
        if "LSE" in machine.traffic.arrays:
            floor = FORWARD_FLOOR + lse_floor(fx.Q, fx.K, **shape)
            budget = Budget.of(truth_LSE, naive_LSE, factor=FORWARD_FACTOR, floor=floor)
            LSE = machine.to_host("LSE")
            self.lse_findings.append(
                compare(
                    fx,
                    "LSE",
                    LSE,
                    budget,
                    fx.Br,
                    invariant=LSE_INVARIANT,
                    cause=lambda: (
                        never_stored(machine, "LSE", len(LSE)) or diagnosis.lse_cause(fx, LSE)
                    ),
                )
            )

    def judge_lse(self) -> Iterator[Finding]:
        """One finding: the first fixture on which the LSE was wrong, or the last one tried."""
        if self.lse_findings:
            yield min(self.lse_findings, key=lambda finding: finding.passed)


def judge_gradients(fx: Fixture, machine: Machine) -> Iterator[Finding]:
    """Findings for dQ, dK and dV; the fixture's invariant is claimed by each in turn."""
    data, shape = (fx.Q, fx.K, fx.V, fx.dO), {"causal": fx.causal, "scale": fx.scale}
    truth, naive = attention_gradients(*data, **shape), naive_backward(*data, **shape)
    floors = gradient_floors(*data, **shape, eps=EPS_FP32)
    for name, tile in (("dQ", fx.Br), ("dK", fx.Bc), ("dV", fx.Bc)):
        budget = Budget.of(
            getattr(truth, name),
            getattr(naive, name),
            factor=GRADIENT_FACTOR,
            floor=getattr(floors, name),
        )
        got = machine.to_host(name)
        yield compare(
            fx,
            name,
            got,
            budget,
            tile,
            invariant=f"{name}: {fx.invariant}",
            cause=lambda name=name, got=got: (
                never_stored(machine, name, len(got)) or diagnosis.gradient_cause(fx, name, got)
            ),
        )


def compare(
    fx: Fixture,
    name: str,
    got: np.ndarray,
    budget: Budget,
    tile: int,
    *,
    invariant: str,
    cause: Callable[[], str],
) -> Finding:
    """One finding about one tensor; `cause` is only asked when it is wrong."""
    worst = float(np.max(errors(got, budget.truth), initial=0.0))
    if budget.accepts(got):
        return Finding(invariant, True, fx.name, error=worst, allowed=budget.allowed)
    where = locate(name, got, budget, tile)
    return Finding(invariant, False, fx.name, where, cause(), worst, budget.allowed)


def run_fixture(
    candidate: Candidate, fx: Fixture, machine: Machine, arrays: list[HbmArray], keywords: dict
) -> Finding | None:
    """Run the candidate; a finding if it broke down, None if there is a result to judge."""
    machine.seal()
    try:
        candidate.on_machine(machine, arrays, keywords)
        machine.sram.settle()
    except StudentFault as fault:
        if fault.fatal:
            raise
        return Finding(fx.invariant, False, fx.name, detail=str(fault))
    except MemoryError as overflow:
        return Finding(fx.invariant, False, fx.name, detail=str(overflow))
    return None


def examine_attention(
    candidate: Candidate,
    names: list[str],
    seed: int,
    *,
    set_up: Callable[[Fixture], tuple[Machine, list[HbmArray], dict]],
    judge: Callable[[Fixture, Machine], Iterator[Finding]],
    bounds: Callable[[Fixture, Machine], Bounds],
) -> Iterator[Evidence]:
    """Every fixture in turn: is the result exact, and were the right bytes moved?"""
    for name in names:
        fx = fixture(name, seed)
        machine, arrays, keywords = set_up(fx)
        breakdown = run_fixture(candidate, fx, machine, arrays, keywords)
        if breakdown:
            yield breakdown
            continue
        yield from judge(fx, machine)
        yield from judge_traffic(fx, machine, bounds(fx, machine))
