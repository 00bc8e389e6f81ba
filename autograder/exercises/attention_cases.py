"""How an attention kernel on the model machine is examined: fixture by fixture, bytes included."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from autograder import diagnosis
from autograder.candidate import Candidate, StudentFault
from autograder.exactness import FORWARD_FACTOR, FORWARD_FLOOR, GRADIENT_FACTOR, Budget, errors
from autograder.exercise import Evidence, Tier
from autograder.exercises.traffic_cases import Bounds, judge_traffic
from autograder.fixtures import FULL_ONLY, QUICK, Fixture, fixture
from autograder.location import locate, never_stored, read_too_early, weights_off
from autograder.result import Finding
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

LSE_INVARIANT = "the LSE of every query is saved: m + ln l"


def fixture_names(tier: Tier, *, causal: bool = True) -> list[str]:
    """Names of the fixtures that a tier tries, without the causal ones if `causal` is False."""
    recipes = QUICK | FULL_ONLY if tier is Tier.FULL else QUICK
    return [name for name, recipe in recipes.items() if causal or not recipe.causal]


@dataclass(frozen=True)
class Trial:
    """One run of the candidate: the fixture, and the machine with what it left in HBM."""

    fx: Fixture
    machine: Machine
    label: str


def judge_forward(trials: list[Trial]) -> Iterator[Finding]:
    """A finding on O for each trial, and one on the LSE over all of them."""
    outputs = [(trial.fx, trial.machine.to_host("O")) for trial in trials]
    causes = diagnosis.ForwardCauses(outputs)
    for trial, (fx, O) in zip(trials, outputs, strict=True):
        budget = Budget.of(_truth(fx)[0], _naive(fx)[0], factor=FORWARD_FACTOR, floor=FORWARD_FLOOR)
        yield compare(
            trial,
            "O",
            O,
            budget,
            fx.Br,
            invariant=fx.invariant,
            cause=lambda trial=trial, fx=fx, O=O: (
                never_stored(trial.machine, "O", len(O))
                or read_too_early(trial.machine)
                or causes.of(fx, O)
                or weights_off(fx, O)
            ),
        )
    if "LSE" in trials[0].machine.traffic.arrays:
        # One finding: the first fixture on which it is wrong, or any if it never is.
        yield min(map(_judge_lse, trials), key=lambda finding: finding.passed)


def _judge_lse(trial: Trial) -> Finding:
    fx, LSE = trial.fx, trial.machine.to_host("LSE")
    floor = FORWARD_FLOOR + lse_floor(fx.Q, fx.K, causal=fx.causal, scale=fx.scale)
    budget = Budget.of(_truth(fx)[1], _naive(fx)[1], factor=FORWARD_FACTOR, floor=floor)
    return compare(
        trial,
        "LSE",
        LSE,
        budget,
        fx.Br,
        invariant=LSE_INVARIANT,
        cause=lambda: (
            never_stored(trial.machine, "LSE", len(LSE))
            or read_too_early(trial.machine)
            or diagnosis.lse_cause(fx, LSE)
        ),
    )


def _truth(fx: Fixture) -> tuple[np.ndarray, np.ndarray]:
    return attention(fx.Q, fx.K, fx.V, causal=fx.causal, scale=fx.scale)


def _naive(fx: Fixture) -> tuple[np.ndarray, np.ndarray]:
    return naive_forward(fx.Q, fx.K, fx.V, causal=fx.causal, scale=fx.scale)


def judge_gradients(trials: list[Trial]) -> Iterator[Finding]:
    """Findings on dQ, dK and dV of each trial, each claiming the fixture's invariant."""
    for trial in trials:
        fx = trial.fx
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
            yield _judge_gradient(trial, name, budget, tile)


def _judge_gradient(trial: Trial, name: str, budget: Budget, tile: int) -> Finding:
    got = trial.machine.to_host(name)
    return compare(
        trial,
        name,
        got,
        budget,
        tile,
        invariant=f"{name}: {trial.fx.invariant}",
        cause=lambda: (
            never_stored(trial.machine, name, len(got))
            or read_too_early(trial.machine)
            or diagnosis.gradient_cause(trial.fx, name, got)
        ),
    )


def compare(
    trial: Trial,
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
        return Finding(invariant, True, trial.label, error=worst, allowed=budget.allowed)
    where = locate(name, got, budget, tile)
    return Finding(invariant, False, trial.label, where, cause(), worst, budget.allowed)


SetUp = Callable[[Fixture], tuple[Machine, list[HbmArray], dict]]


@dataclass(frozen=True)
class Run:
    """A fixture to try, and how to lay it out in HBM.

    `label` and `invariant` stand for the fixture's own where the layout is what is tried.
    """

    fixture: str
    set_up: SetUp
    label: str = ""
    invariant: str = ""


def examine_attention(
    candidate: Candidate,
    runs: list[Run],
    seed: int,
    *,
    judge: Callable[[list[Trial]], Iterator[Finding]],
    bounds: Callable[[Fixture, Machine], Bounds],
) -> Iterator[Evidence]:
    """Run every fixture, then judge: is the result exact, and were the right bytes moved?

    When the candidate has to be stopped by force, what it had finished is judged all the same.
    """
    trials: list[Trial] = []
    stopped: StudentFault | None = None
    for run in runs:
        try:
            outcome = _try(candidate, run, seed)
        except StudentFault as fault:
            stopped = fault
            break
        if isinstance(outcome, Trial):
            trials.append(outcome)
        else:
            yield outcome
    if trials:
        yield from judge(trials)
    for trial in trials:
        unmasked = replace(trial.fx, causal=False)
        yield from judge_traffic(
            trial.machine,
            bounds(trial.fx, trial.machine),
            every_tile=bounds(unmasked, trial.machine),
            label=trial.label,
        )
    if stopped:
        raise stopped


def _try(candidate: Candidate, run: Run, seed: int) -> Trial | Finding:
    """A trial to judge, or a finding that the candidate broke down. Raises fatal faults."""
    fx, label = fixture(run.fixture, seed), run.label or run.fixture
    fx = replace(fx, invariant=run.invariant or fx.invariant)
    machine, arrays, keywords = run.set_up(fx)
    machine.seal()
    try:
        candidate.on_machine(machine, arrays, keywords)
        machine.sram.settle()
    except StudentFault as fault:
        if fault.fatal:
            raise
        return Finding(fx.invariant, False, label, detail=str(fault))
    except MemoryError as overflow:
        return Finding(fx.invariant, False, label, detail=str(overflow))
    return Trial(fx, machine, label)
