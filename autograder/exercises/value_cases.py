"""How a function that predicts numbers is examined: exact equality on several inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real

import numpy as np

from autograder.candidate import Candidate, StudentFault
from autograder.exercise import Evidence
from autograder.result import Finding


def examine_numbers(
    candidate: Candidate,
    cases: Sequence[tuple],
    truth: Callable[..., Mapping[str, Real]],
    *,
    invariants: Mapping[str, str],
    cause: Callable[[tuple, float, float], str],
) -> Iterator[Evidence]:
    """One finding for each named number: right on every case, or wrong on the first that differs.

    Args:
        cases: argument tuples the function is called with.
        truth: the shipped function, which returns a dict of numbers.
        invariants: for each key of that dict, what a right number shows.
        cause: `cause(case, got, want)` names the likely mistake behind a wrong number, or is "".
    """
    try:
        answers = [candidate.call(*case) for case in cases]
    except StudentFault as fault:
        if fault.fatal:
            raise
        for invariant in invariants.values():
            yield Finding(invariant, False, detail=str(fault))
        return
    for key, invariant in invariants.items():
        wanted = [truth(*case)[key] for case in cases]
        yield _compare(key, invariant, zip(cases, answers, wanted, strict=True), cause)


def _compare(key: str, invariant: str, tried, cause) -> Finding:
    for case, answer, want in tried:
        if not isinstance(answer, dict) or key not in answer:
            return Finding(invariant, False, detail=f"the result is a dict with the key {key!r}")
        if not _same_number(answer[key], want):
            detail = f"{key} for {case}: you say {answer[key]}, it is {want}"
            likely = cause(case, answer[key], want) if isinstance(answer[key], Real) else ""
            return Finding(invariant, False, detail=detail, cause=likely)
    return Finding(invariant, True)


def _same_number(got, want) -> bool:
    return isinstance(got, Real) and not isinstance(got, bool) and float(got) == float(want)


def random_shapes(seed: int, *, low: Sequence[int], high: Sequence[int]) -> list[tuple[int, ...]]:
    """Four tuples of whole numbers, each between its `low` and its `high`, that no table holds."""
    drawn = np.random.default_rng(seed).integers(low, high, size=(4, len(low)))
    return [tuple(map(int, row)) for row in drawn]
