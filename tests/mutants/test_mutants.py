"""The grader is proved by mutants: every wrong function fails, for its own reason."""

import pytest

from autograder.exercise import all_exercises
from autograder.grading import grade_function
from autograder.result import Outcome
from tests.mutants import backward, cuda_first_kernels, forward, softmax, traffic
from tests.mutants.mutant import Mutant

WRONG_RESULTS = [
    *forward.FLASH1,
    *forward.FLASH2,
    *backward.BACKWARD,
    *softmax.ONLINE,
    *softmax.MERGE,
    *softmax.FIRST_KERNELS,
    *softmax.THREE_KERNELS,
    *softmax.WARP_SPLIT,
    *cuda_first_kernels.WRONG_RESULTS,
]
WRONG_TRAFFIC = [
    *traffic.FLASH1,
    *traffic.FLASH2,
    *traffic.BACKWARD,
    *traffic.THREE_KERNELS,
    *traffic.FIRST_KERNELS,
    *cuda_first_kernels.WRONG_TRAFFIC,
]


@pytest.mark.parametrize("mutant", WRONG_RESULTS, ids=str)
def test_a_wrong_result_fails_on_the_fixture_made_for_it(mutant: Mutant):
    result = grade_function(mutant.build(), mutant.exercise, seed=3)
    failed = [finding for finding in result.findings if not finding.passed]
    assert result.outcome is Outcome.FAIL
    assert result.earned.traffic == 0
    on_fixture = [finding for finding in failed if mutant.fixture in ("", finding.fixture)]
    assert on_fixture, f"failed only on {[finding.fixture for finding in failed]}"
    said = "; ".join(finding.cause for finding in failed)
    assert mutant.cause in said, f"the report says: {said}"


@pytest.mark.parametrize("mutant", WRONG_TRAFFIC, ids=str)
def test_wrong_traffic_fails_for_the_array_that_moves(mutant: Mutant):
    result = grade_function(mutant.build(), mutant.exercise, seed=3)
    assert result.outcome is Outcome.FAIL
    assert all(finding.passed for finding in result.findings), "the result itself is exact"
    off = {row.array for row in result.traffic if not row.passed and row.fixture == mutant.fixture}
    assert mutant.array in off
    assert all(row.cause for row in result.traffic if not row.passed)
    assert result.earned.exactness == result.possible.exactness
    assert result.earned.traffic < result.possible.traffic


@pytest.mark.parametrize("exercise", all_exercises().values(), ids=lambda e: e.id)
def test_every_shipped_answer_passes_with_full_points(exercise):
    result = grade_function(exercise.shipped_answer(), exercise.id, seed=3)
    assert result.outcome is Outcome.PASS
    assert result.earned == result.possible


def test_every_exercise_has_mutants():
    covered = {mutant.exercise for mutant in (*WRONG_RESULTS, *WRONG_TRAFFIC)}
    assert covered == set(all_exercises())


def test_a_change_that_no_longer_applies_is_reported():
    stale = Mutant("stale", "merge", {"text that is not there": ""}, "")
    with pytest.raises(ValueError, match="0 times"):
        stale.build()
