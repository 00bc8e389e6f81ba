import dataclasses

import pytest

from autograder import exercise as catalogue
from autograder.candidate import StudentFault
from autograder.exercise import Tier
from autograder.grading import grade_function, grade_notebook, points_earned
from autograder.result import Finding, Outcome, Points, TrafficFinding
from tests.autograder import fake_exercises
from tests.autograder.conftest import DOUBLE, TOTAL, code_cell

UNWRITTEN = "def total(x):\n    raise NotImplementedError\n"

pytestmark = pytest.mark.usefixtures("fake_exercises")


def by_id(results):
    return {result.exercise: result for result in results}


def test_a_right_function_earns_everything():
    result = grade_function(fake_exercises.double)
    assert result.outcome is Outcome.PASS
    assert result.earned == result.possible == Points(6, 4)
    assert {row.array for row in result.traffic} == {"X", "Y"}


def test_right_but_wasteful_earns_the_exactness_points():
    def double(machine, X, Y, *, B):
        fake_exercises.double(machine, X, Y, B=B)
        fake_exercises.double(machine, X, Y, B=B)

    result = grade_function(double)
    assert result.outcome is Outcome.FAIL
    assert result.earned == Points(6, 0)


def test_an_id_may_be_given():
    assert grade_function(lambda x: float(x.sum()), "total").outcome is Outcome.PASS
    assert grade_function(12, "guess").outcome is Outcome.PASS
    assert grade_function(13, "guess").outcome is Outcome.FAIL


def test_an_unknown_id_names_those_there_are():
    with pytest.raises(KeyError, match="double, total, guess"):
        grade_function(lambda x: x, "tripel")


def test_the_same_function_is_judged_alike_twice():
    first, second = (grade_function(lambda x: float(x.sum()) + 1e-7, "total") for _ in range(2))
    assert first.findings == second.findings


def test_every_exercise_of_a_notebook_gets_its_own_verdict(notebook):
    path = notebook(code_cell("def double(: oops", "double"), code_cell(TOTAL, "total"))
    results = by_id(grade_notebook(path))
    assert results["double"].outcome is Outcome.FAIL
    assert "syntax error" in results["double"].message
    assert results["total"].outcome is Outcome.PASS


def test_a_hanging_exercise_does_not_stop_the_next(notebook):
    path = notebook(code_cell("while True: pass", "double"), code_cell(TOTAL, "total"))
    results = by_id(grade_notebook(path, seconds=0.5))
    assert "longer than 0.5 s" in results["double"].message
    assert results["total"].outcome is Outcome.PASS


def test_an_unwritten_exercise_is_not_written(notebook):
    path = notebook(code_cell(DOUBLE, "double"), code_cell(UNWRITTEN, "total"))
    results = by_id(grade_notebook(path))
    assert results["double"].outcome is Outcome.PASS
    assert results["total"].outcome is Outcome.NOT_WRITTEN
    assert results["total"].earned.total == 0


def test_a_value_is_taken_from_its_cell(notebook):
    path = notebook(code_cell("guess = 3 * 4", "guess"), lesson=91, name="91_values.ipynb")
    assert grade_notebook(path)[0].outcome is Outcome.PASS
    path = notebook(code_cell("guess = ...", "guess"), lesson=91, name="91_values.ipynb")
    assert grade_notebook(path)[0].outcome is Outcome.NOT_WRITTEN


def test_a_notebook_that_is_none_fails_each_of_its_exercises(tmp_path):
    path = tmp_path / "90_small.ipynb"
    path.write_text("not a notebook")
    results = grade_notebook(path)
    assert [r.exercise for r in results] == ["double", "total"]
    assert all("not JSON" in r.message and r.outcome is Outcome.FAIL for r in results)


def test_a_file_of_no_lesson_fails_under_its_own_name(tmp_path):
    (result,) = grade_notebook(tmp_path / "gone.ipynb")
    assert (result.exercise, result.outcome) == ("gone.ipynb", Outcome.FAIL)
    assert "No such file" in result.message


def test_an_unknown_exercise_in_the_metadata_fails(notebook):
    results = by_id(grade_notebook(notebook(code_cell("x = 1", "duoble"))))
    assert "no exercise is called 'duoble'" in results["duoble"].message


def test_only_some_exercises(notebook):
    path = notebook(code_cell(DOUBLE, "double"), code_cell(TOTAL, "total"))
    assert [r.exercise for r in grade_notebook(path, only=["total"])] == ["total"]


def test_each_grading_draws_its_own_seed(notebook, monkeypatch):
    seeds = []

    def examine(candidate, tier, seed):
        seeds.append((tier, seed))
        yield Finding("x", True)

    fake = dataclasses.replace(fake_exercises.FAKES["total"], examine=examine)
    monkeypatch.setattr(catalogue, "all_exercises", lambda: {"total": fake})
    path = notebook(code_cell(TOTAL, "total"))
    grade_notebook(path)
    grade_notebook(path)
    grade_notebook(path, seed=7, tier=Tier.QUICK)
    assert seeds[0][1] != seeds[1][1]
    assert seeds[2] == (Tier.QUICK, 7)


def test_what_was_printed_is_kept(notebook):
    path = notebook(code_cell("def total(x):\n    print('sum of', len(x))\n    return 0", "total"))
    assert by_id(grade_notebook(path))["total"].printed == "sum of 100\nsum of 100"


# --- an examination that goes wrong


def examined_as(monkeypatch, examine):
    fake = dataclasses.replace(fake_exercises.FAKES["double"], examine=examine)
    monkeypatch.setattr(catalogue, "all_exercises", lambda: {"double": fake})
    return grade_function(fake_exercises.double)


def test_evidence_before_a_stop_is_kept_but_earns_nothing(monkeypatch):
    def examine(candidate, tier, seed):
        yield Finding("a", True, "normal")
        raise StudentFault("too late", fatal=True)

    result = examined_as(monkeypatch, examine)
    assert (result.outcome, result.message) == (Outcome.FAIL, "too late")
    assert len(result.findings) == 1
    assert result.earned == Points(0, 0)


def test_an_examination_that_finds_nothing_never_passes(monkeypatch):
    with pytest.raises(RuntimeError, match="found out nothing"):
        examined_as(monkeypatch, lambda candidate, tier, seed: iter(()))


# --- points


def finding(invariant, passed, fixture=""):
    return Finding(invariant, passed, fixture)


def moved(passed, fixture):
    return TrafficFinding("Q", "read", 10 if passed else 11, 10, 10, fixture)


def test_exactness_points_follow_the_invariants():
    three_of_four = [finding(name, name != "c", "rising") for name in "abcd"]
    assert points_earned(Points(6, 4), three_of_four, []) == Points(4.5, 0)


def test_an_invariant_holds_only_if_it_holds_on_every_fixture():
    tried = [finding("a", True, "f"), finding("a", False, "g"), finding("b", True, "f")]
    assert points_earned(Points(6, 4), tried, []).exactness == 3


def test_without_the_normal_fixture_nothing_is_earned():
    tried = [finding("a", False, "normal"), finding("b", True, "rising")]
    assert points_earned(Points(6, 4), tried, [moved(True, "normal")]) == Points(0, 0)


def test_traffic_points_follow_the_fixtures_and_need_exactness():
    traffic = [moved(True, "f"), moved(True, "f"), moved(True, "g"), moved(False, "g")]
    assert points_earned(Points(6, 4), [finding("a", True)], traffic) == Points(6, 2)
    assert points_earned(Points(6, 4), [finding("a", False, "f")], traffic).traffic == 0


def test_no_traffic_evidence_earns_no_traffic_points():
    assert points_earned(Points(6, 4), [finding("a", True)], []) == Points(6, 0)
