"""A notebook as it was handed in: which exercises it owes, and the cells that answer them.

Only exercise cells and helper cells count. An exercise cell names its exercise in its metadata
(`exercise: ID`); where that was lost, a cell whose only top-level function is `ID` will do, or,
for an exercise that asks for a value, one that assigns to `ID`, or else any that defines `ID`.
"""

import hashlib
import json
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder import exercise as catalogue
from autograder.candidate import StudentFault
from autograder.cell_source import read_source
from autograder.isolation.isolated import Cell

NOTEBOOK_LIMIT = 64 << 20  # bytes
_BLANK = " \t\n\r\u00a0\u200b\ufeff"  # what may cling to a word that was copied
CODE_LIMIT = 2_000_000  # characters in all code cells together


@dataclass(frozen=True)
class NotebookCell:
    """One code cell: its place among all cells (from 1), its source, and what its metadata say."""

    number: int
    source: str
    exercise: str | None = None
    helper: bool = False


@dataclass(frozen=True)
class Submission:
    """A notebook that was handed in.

    Attributes:
        path: where it lies.
        sha256: of the file, hexadecimal; empty if there is no file.
        expected: ids of the exercises that it owes, in lesson order.
        cells: its code cells.
        problem: why nothing in it can be graded, or "".
    """

    path: Path
    sha256: str = ""
    expected: tuple[str, ...] = ()
    cells: tuple[NotebookCell, ...] = field(default=(), repr=False)
    problem: str = ""

    def cells_for(self, exercise_id: str) -> list[Cell]:
        """What to run for one exercise: its own cell among the helper cells, in their order.

        Of other exercises' cells before it only the definitions are taken, and these, like helper
        cells below it, only if they work. Raises StudentFault that says why the exercise has no
        runnable cell.
        """
        own = self._cell_of(exercise_id)
        runnable = []
        for cell in self.cells:
            read = read_source(cell.source)
            if cell.number == own.number:
                runnable.append(_required(cell, "your cell"))
            elif cell.helper and cell.number < own.number:
                runnable.append(_required(cell, f"helper cell {cell.number}"))
            elif cell.helper and not read.fault:
                runnable += _if_it_works(f"helper cell {cell.number}", read.python)
            elif cell.number < own.number and self._is_anothers(cell):
                runnable += _if_it_works(f"cell {cell.number}", read.definitions)
        return runnable

    def _is_anothers(self, cell: NotebookCell) -> bool:
        return bool(cell.exercise or _answers(cell.source) & set(self.expected))

    def cell_left_out(self, name: str) -> int | None:
        """The number of a cell that defines `name` and is not run for any exercise, or None."""
        for cell in self.cells:
            if not cell.helper and not cell.exercise and name in read_source(cell.source).names:
                return cell.number
        return None

    def _cell_of(self, exercise_id: str) -> NotebookCell:
        unnamed = [cell for cell in self.cells if cell.exercise is None]
        found = [cell for cell in self.cells if cell.exercise == exercise_id]
        found = found or [cell for cell in unnamed if exercise_id in _answers(cell.source)]
        found = found or [c for c in unnamed if exercise_id in read_source(c.source).names]
        if not found:
            raise StudentFault(
                f"no cell for this exercise: none has the metadata `exercise: {exercise_id}`, "
                f"and none defines `{exercise_id}`. Copy the cell back from the lesson."
            )
        if len(found) > 1:
            numbers = " and ".join(str(cell.number) for cell in found)
            raise StudentFault(
                f"cells {numbers} both answer this exercise; keep one and delete the other."
            )
        return found[0]


def read_submission(path: str | Path) -> Submission:
    """Read the notebook at `path`; a file that is none becomes a submission with a problem."""
    path = Path(path)
    lesson = _lesson_in_name(path)
    try:
        data = _read_bytes(path)
        notebook = _parse(data)
        cells = tuple(_code_cells(notebook))
        _check_length(cells)
    except StudentFault as fault:
        return Submission(path, expected=_exercises_of(lesson), problem=str(fault))
    return Submission(
        path,
        hashlib.sha256(data).hexdigest(),
        _expected(notebook, cells, lesson),
        cells,
    )


def _read_bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise StudentFault("a directory, not a notebook")
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its other end
            raise StudentFault("not a file that can be read from start to end")
        with path.open("rb") as file:
            data = file.read(NOTEBOOK_LIMIT + 1)
    except OSError as error:
        raise StudentFault(f"cannot be read: {error.strerror}") from None
    if len(data) > NOTEBOOK_LIMIT:
        raise StudentFault(f"larger than {NOTEBOOK_LIMIT >> 20} MiB: clear its outputs first")
    if not data.strip():
        raise StudentFault("the file is empty")
    return data


def _check_length(cells: tuple[NotebookCell, ...]) -> None:
    total = sum(len(cell.source) for cell in cells)
    if total > CODE_LIMIT:
        raise StudentFault(
            f"its code cells hold {total:,} characters; at most {CODE_LIMIT:,} are read"
        )


def _parse(data: bytes) -> dict[str, Any]:
    """The notebook in `data`: a dict whose `cells` is a list. Raises StudentFault.

    Read as JSON rather than with nbformat: a submission need not be valid in every detail to be
    graded, and the schema checker alone takes over a second to load.
    """
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise StudentFault("not a notebook: it is not UTF-8 text") from None
    except (ValueError, RecursionError, MemoryError):
        raise StudentFault("not a notebook: it is not JSON (was the download cut off?)") from None
    if not isinstance(notebook, dict):
        raise StudentFault("not a notebook: JSON, but no object with cells")
    if "worksheets" in notebook:
        raise StudentFault("a notebook of the old format 3: open it in Jupyter and save it once")
    if not isinstance(notebook.get("cells"), list):
        raise StudentFault("not a notebook: it has no list of cells")
    return notebook


def _text(source: Any) -> str:
    """A cell's source, which a notebook may hold as one string or as a list of lines."""
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _metadata(part: dict[str, Any]) -> dict[str, Any]:
    metadata = part.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _code_cells(notebook: dict[str, Any]) -> Iterator[NotebookCell]:
    for number, cell in enumerate(notebook["cells"], start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        exercise, tags = _metadata(cell).get("exercise"), _metadata(cell).get("tags")
        yield NotebookCell(
            number,
            _text(cell.get("source")),
            exercise.strip(_BLANK) if isinstance(exercise, str) else None,
            isinstance(tags, list) and "helper" in tags,
        )


def _expected(
    notebook: dict[str, Any], cells: tuple[NotebookCell, ...], lesson: int | None
) -> tuple[str, ...]:
    """The lesson's exercises, and any other that a cell says it answers.

    The lesson is what the file's name says and what the metadata say: changing one of them does
    not make an exercise go away.
    """
    every = catalogue.all_exercises()
    owed = {*_exercises_of(lesson), *_exercises_of(_lesson_in_metadata(notebook))}
    named = {cell.exercise for cell in cells if cell.exercise}
    if not owed:
        named |= {name for cell in cells for name in _answers(cell.source)}
    known = [name for name in every if name in owed | named]
    return (*known, *sorted(named - set(known)))


def _lesson_in_metadata(notebook: dict[str, Any]) -> int | None:
    course = _metadata(notebook).get("course")
    lesson = course.get("lesson") if isinstance(course, dict) else None
    return lesson if type(lesson) is int else None


def _exercises_of(lesson: int | None) -> tuple[str, ...]:
    every = catalogue.all_exercises().values()
    return tuple(exercise.id for exercise in every if exercise.lesson == lesson)


def _lesson_in_name(path: Path) -> int | None:
    number = re.match(r"(\d\d)_", path.name)
    return int(number[1]) if number else None


def _answers(source: str) -> set[str]:
    """The exercises that a cell without metadata answers, by what stands at its top level."""
    read, every = read_source(source), catalogue.all_exercises()
    found = set(read.functions) if len(set(read.functions)) == 1 else set()
    found |= {name for name in read.values if name in every and every[name].is_value}
    return found & set(every)


def _required(cell: NotebookCell, label: str) -> Cell:
    read = read_source(cell.source)
    if read.fault:
        raise StudentFault(read.fault.of(label))
    return Cell(label, read.python)


def _if_it_works(label: str, source: str) -> list[Cell]:
    """A cell that may raise without harm; none for no source."""
    return [Cell(label, source, required=False)] if source.strip() else []
