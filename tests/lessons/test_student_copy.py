"""`make start`: a copy to write in, which nothing overwrites."""

import errno
import json
from pathlib import Path

import pytest

from lessons import student_copy
from lessons.build import COURSE
from lessons.notebook import notebook_text
from lessons.student_copy import BANNER, CopyError, copy_lessons


def lesson(title):
    """The text of a notebook with a banner and a title, as `lessons.build` writes it."""
    banner = {"cell_type": "markdown", "id": "banner", "source": ["*Generated from elsewhere.*"]}
    heading = {"cell_type": "markdown", "id": "heading", "source": [f"# {title}"]}
    return notebook_text({"cells": [banner, heading], "nbformat": 4})


def copy_of(title):
    """What a student is to find of `lesson(title)`."""
    return lesson(title).replace("*Generated from elsewhere.*", BANNER)


@pytest.fixture
def root(tmp_path):
    """A course with two lessons and no copy."""
    (tmp_path / "lessons").mkdir()
    for name in ("00_first", "01_second"):
        (tmp_path / "lessons" / f"{name}.ipynb").write_text(lesson(name))
    (tmp_path / "lessons" / "build.py").write_text("not for students")
    return tmp_path


def mine(root):
    return {path.name: path.read_text() for path in (root / "my_lessons").iterdir()}


def test_copies_the_notebooks_and_nothing_else(root):
    assert copy_lessons(root) == (["00_first.ipynb", "01_second.ipynb"], [])
    assert mine(root) == {
        "00_first.ipynb": copy_of("00_first"),
        "01_second.ipynb": copy_of("01_second"),
    }


def test_the_copy_of_a_real_lesson_differs_in_its_banner_alone(tmp_path):
    (tmp_path / "lessons").mkdir()
    built = (COURSE / "lessons" / "00_the_machine.ipynb").read_text(encoding="utf-8")
    (tmp_path / "lessons" / "00_the_machine.ipynb").write_text(built, encoding="utf-8")
    copy_lessons(tmp_path)
    first, *cells = json.loads(mine(tmp_path)["00_the_machine.ipynb"])["cells"]
    assert "solutions/" not in "".join(first["source"])
    assert cells == json.loads(built)["cells"][1:]


@pytest.mark.parametrize("text", ["lesson", "[]", "{}", '{"cells": [1]}', "[" * 10**5])
def test_a_lesson_that_is_no_notebook_is_said(root, text):
    (root / "lessons" / "00_first.ipynb").write_text(text)
    with pytest.raises(CopyError, match=r"00_first\.ipynb is no notebook"):
        copy_lessons(root)
    assert mine(root) == {}


def test_never_overwrites_and_adds_what_is_new(root, capsys):
    copy_lessons(root)
    (root / "my_lessons" / "00_first.ipynb").write_text("an hour of work")
    (root / "lessons" / "00_first.ipynb").write_text(lesson("a newer lesson"))
    (root / "lessons" / "02_third.ipynb").write_text(lesson("02_third"))
    assert student_copy.main([], root=root) == 0
    assert mine(root)["00_first.ipynb"] == "an hour of work"
    assert mine(root)["02_third.ipynb"] == copy_of("02_third")
    said = capsys.readouterr().out
    assert "kept  my_lessons/00_first.ipynb" in said
    assert "added my_lessons/02_third.ipynb" in said
    assert "added my_lessons/00_first.ipynb" not in said
    assert "Now run `make lab`" in said


def test_make_lab_hears_only_of_what_is_new(root, capsys):
    assert student_copy.main(["--quiet"], root=root) == 0
    assert capsys.readouterr().out == (
        "added my_lessons/00_first.ipynb\nadded my_lessons/01_second.ipynb\n"
    )
    assert student_copy.main(["--quiet"], root=root) == 0
    assert capsys.readouterr().out == ""


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


def test_a_link_that_leads_nowhere_is_said(root, capsys):
    (root / "my_lessons").symlink_to(root / "unplugged")
    assert student_copy.main([], root=root) == 1
    assert "my_lessons is a link that leads nowhere; move it away" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        ("mkdir", "my_lessons cannot be made: Read-only file system\n"),
        ("open", "my_lessons/00_first.ipynb cannot be written: Read-only file system\n"),
        ("read_bytes", "lessons/00_first.ipynb cannot be read: Read-only file system\n"),
    ],
)
def test_a_disk_that_refuses_is_one_line(root, capsys, monkeypatch, refused, words):
    usual = getattr(Path, refused)

    def refuse(path, *arguments, **keywords):
        if refused == "open" and keywords.get("mode") == "rb":  # read_bytes opens, too
            return usual(path, *arguments, **keywords)
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, refused, refuse)
    assert student_copy.main([], root=root) == 1
    assert capsys.readouterr().err == words
