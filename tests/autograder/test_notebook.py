import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import notebook
from autograder.notebook import check, hint, progress, ready
from autograder.progress_file import LOCK, NAME, ProgressFile
from autograder.result import Outcome, Points, Result
from tests.autograder import fake_exercises

COURSE = Path(__file__).parents[2]
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


@pytest.mark.parametrize("call", [check, ready, hint])
@pytest.mark.parametrize("nameless", [[], {}, None, 5])
def test_what_has_no_name_is_explained_in_every_call(call, nameless):
    with pytest.raises(KeyError, match=f"this {type(nameless).__name__} has no name.*double"):
        call(nameless)


@pytest.mark.parametrize("odd", [["double"], 5, double, ""])
def test_an_id_is_text(odd):
    with pytest.raises(KeyError, match=r"is text in quotes, not a|no exercise is called"):
        check(double, odd)


def test_an_object_that_answers_no_question_about_itself():
    class Stubborn:
        def __getattr__(self, name):
            raise RuntimeError(name)

        def __call__(self, machine, X, Y, *, B):
            double(machine, X, Y, B=B)

    with pytest.raises(KeyError, match="this Stubborn has no name"):
        check(Stubborn())
    assert repr(check(Stubborn(), "double")).startswith("PASS")


class Odd(BaseException):
    pass


@pytest.mark.parametrize("kind", [Odd, GeneratorExit, SystemExit])
def test_whatever_a_function_raises_is_a_report(kind):
    def total(x):
        raise kind("boo")

    text = repr(check(total))
    assert text.startswith("FAIL")
    assert f"{kind.__name__} in line" in text


def test_the_stop_button_stops():
    def total(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(total)


def test_an_unknown_name_lists_the_exercises():
    with pytest.raises(KeyError, match="double, total, guess"):
        check(12, "gess")


# --- ready


def test_ready_gives_ones_own_function_once_it_passed(capsys):
    check(double)
    assert ready("double") is double
    assert ready(double) is double
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


@pytest.mark.parametrize(
    "odd",
    [
        '{"best": "a", "checks": [], "hints": {}}',
        '{"outcome": 5}',
        '{"outcome": "\\ud800\\n\\u001b[31m"}',
        '{"hints": -100, "best": -1}',
        '{"best": true, "checks": true, "hints": true}',
        '{"best": NaN}',
        '{"best": Infinity, "hints": 1e400}',
        '{"best": ' + "9" * 400 + "}",
        '{"hints": ' + "9" * 4000 + ', "checks": -1}',
    ],
)
def test_odd_entries_are_survived(odd):
    with open(NAME, "w") as file:
        file.write(f'{{"exercises": {{"double": {odd}}}}}')
    assert "double    not tried  0 of 10  0 of 2" in repr(progress())
    assert hint("double").startswith("Hint 1")
    check(double)
    assert saved()["double"] == {"outcome": "PASS", "best": 10, "checks": 1, "hints": 1}


def test_no_more_is_shown_than_there_is():
    with open(NAME, "w") as file:
        file.write('{"exercises": {"double": {"best": 700, "hints": 99}}}')
    assert "10 of 10  2 of 2" in repr(progress())


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


def test_a_folder_in_the_place_of_the_file_stops_nothing():
    os.mkdir(NAME)
    assert repr(check(double)).startswith("PASS")
    assert hint("double").startswith("Hint 1")
    assert set(os.listdir()) == {NAME, LOCK}  # nothing half-written is left


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for():
    os.mkfifo(NAME)
    assert "not tried" in repr(progress())


def test_a_working_folder_that_is_gone_stops_nothing(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert repr(check(double)).startswith("PASS")
    assert hint("double").startswith("Hint 1")
    assert "not tried" in repr(progress())


@pytest.mark.parametrize("before", [None, 0o600, 0o640])
def test_the_permissions_are_those_of_any_file_and_stay(before):
    if before:
        open(NAME, "w").close()
        os.chmod(NAME, before)
    open("plain", "w").close()
    check(double)
    usual = os.stat("plain").st_mode & 0o777
    assert os.stat(NAME).st_mode & 0o777 == (before or usual)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    os.symlink("elsewhere/kept.json", NAME)
    check(double)
    assert os.path.islink(NAME)
    assert saved()["double"]["outcome"] == "PASS"


WRITER = """
import sys
from autograder.progress_file import ProgressFile
from autograder.result import Outcome, Points, Result
for _ in range(100):
    ProgressFile().record(Result(sys.argv[1], Outcome.PASS, earned=Points(1, 1)))
"""


def test_two_kernels_that_write_at_once_lose_nothing(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(COURSE))
    command = [sys.executable, "-c", WRITER]
    writers = [subprocess.Popen([*command, name]) for name in ("double", "total")]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    assert {name: entry["checks"] for name, entry in saved().items()} == {
        "double": 100,
        "total": 100,
    }
