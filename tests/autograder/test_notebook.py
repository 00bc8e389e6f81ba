import json
import os

import pytest

from autograder import notebook
from autograder.notebook import check, hint, progress, ready
from autograder.progress_file import NAME, ProgressFile
from autograder.result import Outcome, Points, Result
from tests.autograder import fake_exercises

pytestmark = pytest.mark.usefixtures("fake_exercises")


@pytest.fixture(autouse=True)
def fresh_session(monkeypatch, tmp_path):
    """A new kernel in an empty folder of notebooks."""
    monkeypatch.setattr(notebook, "_passed", {})
    monkeypatch.chdir(tmp_path)


def double(machine, X, Y, *, B):
    fake_exercises.double(machine, X, Y, B=B)


def total(x):
    raise NotImplementedError


def saved():
    with open(NAME) as file:
        return json.load(file)["exercises"]


# --- check


def test_check_goes_by_the_name_of_the_function():
    assert repr(check(double)).startswith("PASS  double")


def test_check_of_a_value():
    assert repr(check(12, "guess")).startswith("PASS")
    assert repr(check(11, "guess")).startswith("FAIL")
    assert repr(check(None, "guess")).startswith("NOT WRITTEN")


def test_check_of_an_unwritten_function_does_not_raise():
    assert repr(check(total)).startswith("NOT WRITTEN")


def test_check_of_broken_code_does_not_raise():
    def total(x):
        return x.nothing

    text = repr(check(total))
    assert text.startswith("FAIL")
    assert f"line {total.__code__.co_firstlineno + 1} of test_notebook.py" in text


def test_a_value_needs_an_id():
    with pytest.raises(KeyError, match="say which exercise it answers"):
        check(12)


def test_an_unknown_name_lists_the_exercises():
    with pytest.raises(KeyError, match="double, total, guess"):
        check(12, "gess")


# --- ready


def test_ready_gives_ones_own_function_once_it_passed(capsys):
    check(double)
    assert ready("double") is double
    assert capsys.readouterr().out == ""


def test_ready_gives_the_courses_answer_and_says_so(capsys):
    assert ready("double") is fake_exercises.double
    assert "double has not passed yet: this cell uses the course's own" in capsys.readouterr().out


def test_a_function_that_no_longer_passes_is_forgotten():
    check(double)
    check(lambda machine, X, Y, *, B: None, "double")
    assert ready("double") is fake_exercises.double


def test_ready_without_an_answer_to_fall_back_on():
    with pytest.raises(LookupError, match=r"run check\(guess\) first"):
        ready("guess")


# --- hint


def test_hints_come_one_at_a_time_below_those_already_read():
    first = "Hint 1: Load a tile."
    both = f"{first}\nHint 2: Store twice the tile.\n(that was the last)"
    assert repr(hint("double")) == f"{first}\n(1 more)"
    assert repr(hint(double)) == both
    assert repr(hint(double)) == both
    assert saved()["double"]["hints"] == 2


def test_no_hints():
    assert "guess has no hints" in hint("guess")


def test_an_id_handed_to_check_is_explained():
    with pytest.raises(KeyError, match=r"write check\(double\), without quotes"):
        check("double")


# --- progress


def test_progress_shows_every_exercise():
    check(double)
    check(total)
    hint("total")
    text = repr(progress())
    assert "90      double    PASS         10 of 10  0 of 2" in text
    assert "90      total     NOT WRITTEN  0 of 10   1 of 1" in text
    assert "91      guess     not tried    0 of 2    0 of 0" in text
    assert text.endswith("1 of 3 exercises pass")
    assert "<caption" in progress()._repr_html_()


def test_the_best_points_stay_when_a_later_try_is_worse():
    check(double)
    check(lambda machine, X, Y, *, B: None, "double")
    entry = saved()["double"]
    assert (entry["outcome"], entry["best"], entry["checks"]) == ("FAIL", 10, 2)


def result(exercise, outcome=Outcome.PASS):
    return Result(exercise, outcome, earned=Points(1, 1))


def test_two_notebooks_of_a_folder_share_the_file():
    first, second = ProgressFile(), ProgressFile()
    first.entries()
    second.record(result("double"))
    first.record(result("total"))
    assert set(saved()) == {"double", "total"}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"exercises": 3}', '{"exercises": {"double": 7}}', "[" * 10**5]
)
def test_a_damaged_file_is_started_afresh(text):
    with open(NAME, "w") as file:
        file.write(text)
    assert "not tried" in repr(progress())
    check(double)
    assert saved()["double"]["outcome"] == "PASS"


@pytest.mark.parametrize("odd", ['{"best": "a", "checks": [], "hints": {}}', '{"outcome": 5}'])
def test_odd_entries_are_survived(odd):
    with open(NAME, "w") as file:
        file.write(f'{{"exercises": {{"double": {odd}}}}}')
    progress()
    hint("double")
    check(double)
    assert saved()["double"]["checks"] == 1


def test_the_file_is_replaced_in_one_step(monkeypatch):
    check(double)
    before = saved()

    def power_cut(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", power_cut)
    with pytest.raises(KeyboardInterrupt):
        check(total)
    assert saved() == before


def test_a_folder_that_cannot_be_written_stops_nothing(monkeypatch):
    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert repr(check(double)).startswith("PASS")
