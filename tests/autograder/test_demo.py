"""The demo shows what it claims to show, and says so when it cannot."""

import shutil

import pytest

from autograder.demo import COURSE, RIGHT, WRONG, DemoError, demo

SOLVED = next(iter(sorted((COURSE / "solutions").glob("03_*.ipynb"))), None)


@pytest.fixture
def course(tmp_path):
    """A folder with a copy of the solved lesson 03."""
    assert SOLVED, "solutions/ has no notebook of lesson 03"
    (tmp_path / "solutions").mkdir()
    shutil.copy(SOLVED, tmp_path / "solutions")
    return tmp_path


def change(course, old, new):
    notebook = course / "solutions" / SOLVED.name
    text = notebook.read_text()
    assert old in text
    notebook.write_text(text.replace(old, new))


def test_one_passes_and_one_names_the_broken_invariant(course, capsys):
    demo(course)
    first, second = capsys.readouterr().out.split("2. The same, but")
    assert "PASS  flash1_forward" in first
    assert "broken" not in first
    assert "FAIL  flash1_forward" in second
    assert "✗ broken equals attention in float64" in second
    assert "likely cause: O is not multiplied by e^(m_old − m_new)" in second
    assert "✓ held   the LSE of every query is saved" in second
    assert 'the second breaks "equals attention in float64" and' in second


def test_a_solved_lesson_that_fails_is_no_demo(course):
    change(course, RIGHT, WRONG)
    with pytest.raises(DemoError, match="exit status 1, expected 0"):
        demo(course)


def test_a_lesson_that_was_rewritten_asks_for_a_new_demo(course):
    change(course, "keep[:, None] * o_old", "o_old * keep[:, None]")
    with pytest.raises(DemoError, match="adapt the demo"):
        demo(course)


def test_a_missing_lesson_is_said(tmp_path):
    with pytest.raises(DemoError, match="no notebook of lesson 03"):
        demo(tmp_path)
