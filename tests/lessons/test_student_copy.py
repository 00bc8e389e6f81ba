"""`make start`: a copy to write in, which nothing overwrites."""

import pytest

from lessons import student_copy
from lessons.student_copy import CopyError, copy_lessons


@pytest.fixture
def root(tmp_path):
    """A course with two lessons and no copy."""
    (tmp_path / "lessons").mkdir()
    for name in ("00_first", "01_second"):
        (tmp_path / "lessons" / f"{name}.ipynb").write_text(f"lesson {name}")
    (tmp_path / "lessons" / "build.py").write_text("not for students")
    return tmp_path


def mine(root):
    return {path.name: path.read_text() for path in (root / "my_lessons").iterdir()}


def test_copies_the_notebooks_and_nothing_else(root):
    assert copy_lessons(root) == (["00_first.ipynb", "01_second.ipynb"], [])
    assert mine(root) == {
        "00_first.ipynb": "lesson 00_first",
        "01_second.ipynb": "lesson 01_second",
    }


def test_never_overwrites_and_adds_what_is_new(root, capsys):
    copy_lessons(root)
    (root / "my_lessons" / "00_first.ipynb").write_text("an hour of work")
    (root / "lessons" / "00_first.ipynb").write_text("a newer lesson")
    (root / "lessons" / "02_third.ipynb").write_text("lesson 02_third")
    assert student_copy.main([], root=root) == 0
    assert mine(root)["00_first.ipynb"] == "an hour of work"
    assert mine(root)["02_third.ipynb"] == "lesson 02_third"
    said = capsys.readouterr().out
    assert "kept  my_lessons/00_first.ipynb" in said
    assert "added my_lessons/02_third.ipynb" in said
    assert "added my_lessons/00_first.ipynb" not in said


def test_a_link_is_not_followed_to_overwrite_something(root):
    target = root / "thesis.ipynb"
    target.write_text("a thesis")
    (root / "my_lessons").mkdir()
    (root / "my_lessons" / "00_first.ipynb").symlink_to(target)
    assert copy_lessons(root)[1] == ["00_first.ipynb"]
    assert target.read_text() == "a thesis"


def test_no_lessons_is_said_in_one_line(tmp_path, capsys):
    assert student_copy.main([], root=tmp_path) == 1
    assert capsys.readouterr().err == "lessons/ holds no notebook; run `make lessons` first\n"
    assert not (tmp_path / "my_lessons").exists()


def test_a_file_in_the_way_is_said(root):
    (root / "my_lessons").write_text("notes")
    with pytest.raises(CopyError, match="my_lessons is a file"):
        copy_lessons(root)
    assert (root / "my_lessons").read_text() == "notes"
