"""The two notebooks of a lesson: one for the student, one solved.

Nothing in them depends on when, where or in which order they are made, so a second build gives
the same bytes, and a notebook that differs was edited by hand.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from lessons.include import expand_includes
from lessons.markers import solved_text, student_text
from lessons.python_cells import refuse_bad_python
from lessons.source import Cell, Lesson, LessonError

_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_HEADING = re.compile(r"#{1,6} (.+)")
BANNER_ID = "banner"


@dataclass(frozen=True)
class Notebooks:
    """The notebooks built from one lesson, as the text of their files.

    `exercises` are the ids of the lesson's exercises, in order.
    """

    name: str
    exercises: tuple[str, ...]
    student: str
    solved: str

    def files(self) -> dict[str, str]:
        """Text by file name, relative to the course's folder."""
        return {
            f"lessons/{self.name}.ipynb": self.student,
            f"solutions/{self.name}.ipynb": self.solved,
        }


def files_of(lessons: list[Notebooks]) -> dict[str, str]:
    """Text by file name, of all lessons together."""
    return {name: text for lesson in lessons for name, text in lesson.files().items()}


def build_notebooks(lesson: Lesson, root: Path, repository: str = "") -> Notebooks:
    """Make both notebooks of `lesson`.

    Args:
        lesson: the source.
        root: the course's folder, in which includes are looked up.
        repository: the course's address, https://github.com/OWNER/NAME, for the Colab badge;
            empty for no badge.

    Raises LessonError for a bad include, bad solution markers, a code cell that is not Python,
    or an exercise asked twice.
    """
    cells = [cell if cell.markdown else expand_includes(cell, root) for cell in lesson.cells]
    _refuse_asked_twice(cells)
    texts = [(c.text, c.text) if c.markdown else _code_texts(c) for c in cells]
    student, solved = (
        _file_text(lesson, folder, cells, [pair[which] for pair in texts], repository)
        for which, folder in enumerate(("lessons", "solutions"))
    )
    return Notebooks(lesson.name, tuple(c.exercise for c in cells if c.exercise), student, solved)


def _code_texts(cell: Cell) -> tuple[str, str]:
    """A code cell in the student's copy and in the solved one."""
    student, solved = student_text(cell), solved_text(cell)
    refuse_bad_python(cell, student)
    return student, solved


def _refuse_asked_twice(cells: list[Cell]) -> None:
    seen: dict[str, Cell] = {}
    for cell in cells:
        if cell.exercise in seen:
            first = seen[cell.exercise].marker.number
            cell.fault(cell.marker, f"this exercise is asked already, in line {first}")
        if cell.exercise:
            seen[cell.exercise] = cell


def _file_text(
    lesson: Lesson, folder: str, cells: list[Cell], texts: list[str], repository: str
) -> str:
    ids = _cell_ids(cells)
    notebook = {
        "cells": [
            _banner(lesson, folder, repository),
            *map(_lesson_cell, cells, ids, texts),
        ],
        "metadata": _METADATA | {"course": {"lesson": lesson.number}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return notebook_text(notebook)


def notebook_text(notebook: dict) -> str:
    """The text of the file that holds a notebook, given as a JSON value."""
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _banner(lesson: Lesson, folder: str, repository: str) -> dict:
    """The first cell: where the notebook comes from, and the Colab badge if there is one."""
    lines = [
        f"*Generated from `{lesson.source}`; edit that file. "
        "To work through the lesson, run `make start` and open the copy in `my_lessons/`.*"
    ]
    if repository:
        path = repository.removeprefix("https://github.com/").strip("/")
        notebook = f"github/{path}/blob/main/{folder}/{lesson.name}.ipynb"
        badge = "https://colab.research.google.com/assets/colab-badge.svg"
        link = f"https://colab.research.google.com/{notebook}"
        lines += ["", f"[![Open in Colab]({badge})]({link})"]
    return _notebook_cell("markdown", BANNER_ID, {}, "\n".join(lines))


def _lesson_cell(cell: Cell, cell_id: str, text: str) -> dict:
    metadata: dict = {"tags": list(cell.tags)} if cell.tags else {}
    if cell.exercise:
        metadata["exercise"] = cell.exercise
    written = _notebook_cell("markdown" if cell.markdown else "code", cell_id, metadata, text)
    return written if cell.markdown else written | {"execution_count": None, "outputs": []}


def _notebook_cell(kind: str, cell_id: str, metadata: dict, text: str) -> dict:
    source = text.splitlines(keepends=True)
    return {"cell_type": kind, "id": cell_id, "metadata": metadata, "source": source}


def _cell_ids(cells: list[Cell]) -> list[str]:
    """An id for each cell that stays when cells are put in elsewhere.

    A heading gives its own words, an exercise its id, any other cell the section it is in and
    its tag or kind; the second of a name is called name-2.
    """
    ids, used, section = [], {BANNER_ID}, "start"
    for cell in cells:
        heading = _HEADING.match(cell.text) if cell.markdown else None
        if heading:
            wanted = section = _slug(heading[1])
        elif cell.exercise:
            wanted = f"exercise-{_slug(cell.exercise)}"
        else:
            kind = cell.tags[0] if cell.tags else ("text" if cell.markdown else "code")
            wanted = f"{section}-{kind}"
        ids.append(_unused(wanted, used))
    return ids


def _slug(words: str) -> str:
    """At most 40 of nbformat's id characters that recall `words`."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:40].strip("-") or "section"


def _unused(wanted: str, used: set[str]) -> str:
    name, count = wanted, 1
    while name in used:
        count += 1
        name = f"{wanted}-{count}"
    used.add(name)
    return name


def validate(name: str, text: str) -> None:
    """Raise LessonError when `text`, which is to become the file `name`, is no valid notebook."""
    # nbformat takes more than a second to import, and a check that finds nothing new needs none.
    import nbformat

    try:
        nbformat.validate(nbformat.reads(text, as_version=4))
    except (nbformat.ValidationError, nbformat.reader.NotJSONError) as error:
        raise LessonError(f"{name}: not a valid notebook: {str(error).splitlines()[0]}") from error
