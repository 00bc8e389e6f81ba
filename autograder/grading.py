"""From evidence to verdict: one function, or every exercise of a notebook.

Points. Exactness points are earned in proportion to the named invariants that hold on every
fixture; nothing is earned if the fixture `normal` fails or if the exercise was stopped. Traffic
points count only when every invariant holds, in proportion to the fixtures whose bytes all lie
within their closed forms. PASS needs everything.
"""

import re
import secrets
import time
from collections.abc import Collection, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.candidate import Candidate, NotWritten, StudentFault
from autograder.exercise import Exercise, Tier, get_exercise
from autograder.in_process import InProcess
from autograder.result import Finding, Outcome, Points, Result, TrafficFinding

if TYPE_CHECKING:  # the notebook side never starts a process, and does without these
    from autograder.isolation.sandbox import Sandbox
    from autograder.submission import Submission

SESSION_SEED = 0  # `check` gives the same verdict twice


def grade_function(
    function: Any, exercise_id: str | None = None, tier: Tier = Tier.QUICK, seed: int = SESSION_SEED
) -> Result:
    """Examine a function (or value) in this process.

    Args:
        function: the student's function, or the value handed in.
        exercise_id: the exercise; by default the function's own name.
        tier: how much is tried.
        seed: for the random fixtures.

    Raises KeyError, naming the exercises there are, for an id that is none of them.
    """
    exercise = get_exercise(exercise_id or getattr(function, "__name__", repr(function)))
    return examine(exercise, InProcess(function), tier, seed)


def grade_notebook(
    path: str | Path,
    *,
    seconds: float = 60.0,
    memory: int = 2 << 30,
    tier: Tier = Tier.FULL,
    seed: int | None = None,
    only: Collection[str] = (),
) -> list[Result]:
    """Grade every exercise of a notebook, each in a process of its own; none stops another.

    Args:
        path: the notebook.
        seconds: wall time for the student's code of one exercise.
        memory: address space for it, in bytes.
        tier: how much is tried.
        seed: for the random fixtures; by default one that nobody can guess.
        only: ids of the exercises to grade; by default all that the notebook owes.
    """
    from autograder.isolation.limits import Limits
    from autograder.isolation.sandbox import Sandbox
    from autograder.submission import read_submission

    sandbox = Sandbox(Limits(seconds=seconds, memory=memory))
    return list(grade_submission(read_submission(path), sandbox, tier, seed, only))


def grade_submission(
    submission: "Submission",
    sandbox: "Sandbox",
    tier: Tier = Tier.FULL,
    seed: int | None = None,
    only: Collection[str] = (),
) -> Iterator[Result]:
    """Yield the result of each exercise that a submission owes, as it is graded."""
    seed = secrets.randbits(63) if seed is None else seed
    if sandbox.wall.name == "none":
        _load_the_rest()
    if submission.problem and not submission.expected:
        yield Result(submission.path.name, Outcome.FAIL, message=submission.problem)
    for exercise_id in submission.expected:
        if not only or exercise_id in only:
            yield _grade_exercise(submission, exercise_id, sandbox, tier, seed)


def _grade_exercise(
    submission: "Submission", exercise_id: str, sandbox: "Sandbox", tier: Tier, seed: int
) -> Result:
    from autograder.isolation.isolated import Isolated

    try:
        exercise = get_exercise(exercise_id)
    except KeyError as error:
        return Result(exercise_id, Outcome.FAIL, message=error.args[0], possible=Points(0, 0))
    started = time.perf_counter()
    try:
        if submission.problem:
            raise StudentFault(submission.problem)
        with Isolated(submission.cells_for(exercise_id), exercise_id, sandbox) as candidate:
            result = examine(exercise, candidate, tier, seed)
            result.printed = candidate.printed()
            result.message = result.message or _missing_helper(submission, result)
    except (NotWritten, StudentFault) as stop:
        result = _verdict(exercise, [], stop, started)
    result.wall = sandbox.wall.name
    return result


def _load_the_rest() -> None:
    """Import now what would be imported once a submission has run, and may have changed it."""
    for name in ("autograder.report", "autograder.progress_bar", "rich.console", "rich.progress"):
        import_module(name)


def _missing_helper(submission: "Submission", result: Result) -> str:
    """Explains a NameError by the cell that grading does not run, or is ""."""
    for finding in result.findings:
        missing = re.search(r"name '(\w+)' is not defined", finding.detail)
        number = missing and submission.cell_left_out(missing[1])
        if number:
            return (
                f"{missing[1]} is defined in cell {number}, which grading does not run: move it "
                "into the exercise's cell, or give that cell the tag `helper`"
            )
    return ""


def examine(exercise: Exercise, candidate: Candidate, tier: Tier, seed: int) -> Result:
    """Put a candidate through an exercise's examination and draw the verdict."""
    started = time.perf_counter()
    evidence: list[Finding | TrafficFinding] = []
    stop: Exception | None = None
    try:
        for finding in exercise.examine(candidate, tier, seed):
            evidence.append(finding)
    except (NotWritten, StudentFault) as reason:
        stop = reason
    except Exception as error:
        # The examination did arithmetic on what the function returned, and it was no number.
        stop = StudentFault(
            f"what your function returned could not be examined ({type(error).__name__}: {error}); "
            f"it is called as {exercise.signature}"
        )
    return _verdict(exercise, evidence, stop, started)


def _verdict(exercise: Exercise, evidence: list, stop: Exception | None, started: float) -> Result:
    findings = [finding for finding in evidence if isinstance(finding, Finding)]
    traffic = [finding for finding in evidence if isinstance(finding, TrafficFinding)]
    if stop is None and not findings:
        raise RuntimeError(f"the examination of {exercise.id} found out nothing")
    passed = stop is None and all(finding.passed for finding in evidence)
    outcome = Outcome.PASS if passed else Outcome.FAIL
    return Result(
        exercise.id,
        Outcome.NOT_WRITTEN if isinstance(stop, NotWritten) else outcome,
        findings,
        traffic,
        message=str(stop or ""),
        earned=Points(0, 0) if stop else points_earned(exercise.points, findings, traffic),
        possible=exercise.points,
        seconds=time.perf_counter() - started,
    )


def points_earned(
    possible: Points, findings: list[Finding], traffic: list[TrafficFinding]
) -> Points:
    """Points for the evidence of an examination that ran to its end."""
    if any(f.fixture == "normal" and not f.passed for f in findings):
        return Points(0, 0)
    exact = share(_held(findings, "invariant"))
    right = share(_held(traffic, "fixture")) if exact == 1 else 0
    return Points(round(possible.exactness * exact, 2), round(possible.traffic * right, 2))


def _held(evidence: Iterable[Finding | TrafficFinding], attribute: str) -> list[bool]:
    """For each different value of `attribute`, whether all evidence with that value passed."""
    held: dict[str, bool] = {}
    for finding in evidence:
        name = getattr(finding, attribute)
        held[name] = held.get(name, True) and finding.passed
    return list(held.values())


def share(held: list[bool]) -> float:
    """The part of them that is true; none of nothing."""
    return sum(held) / len(held) if held else 0.0
