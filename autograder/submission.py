"""A notebook as it was handed in: which exercises it owes, and the cells that answer them.

Only exercise cells and helper cells count. An exercise cell names its exercise in its metadata
(`exercise: ID`); where that was lost, a cell whose only top-level function is `ID` will do, or,
for an exercise that asks for a value, one that assigns to `ID`.
"""

import ast
import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder import exercise as catalogue
from autograder.candidate import StudentFault
from autograder.isolation.isolated import Cell

NOTEBOOK_LIMIT = 64 << 20  # bytes
SOURCE_LIMIT = 200_000  # characters in a cell
_MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)
_NOT_PYTHON = re.compile(r"\s*%%(?!(time|timeit|capture|prun)\b)")


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
        """What to run for one exercise: helper cells before it, then its own cell.

        Of other exercises' cells before it only the definitions are taken, and only if they work.
        Raises StudentFault that says why the exercise has no runnable cell.
        """
        own = self._cell_of(exercise_id)
        runnable = []
        for cell in self.cells:
            if cell.number == own.number:
                runnable.append(_required(cell, "your cell"))
                return runnable
            if cell.helper:
                runnable.append(_required(cell, f"helper cell {cell.number}"))
            elif cell.exercise or _answers(cell.source) & set(self.expected):
                runnable += _definitions(cell)
        raise AssertionError("a cell's own number is among the numbers of the cells")

    def cell_left_out(self, name: str) -> int | None:
        """The number of a cell that defines `name` and is not run for any exercise, or None."""
        for cell in self.cells:
            if not cell.helper and not cell.exercise and name in _top_level_names(cell.source):
                return cell.number
        return None

    def _cell_of(self, exercise_id: str) -> NotebookCell:
        found = [cell for cell in self.cells if cell.exercise == exercise_id]
        found = found or [
            cell
            for cell in self.cells
            if cell.exercise is None and exercise_id in _answers(cell.source)
        ]
        if not found:
            raise StudentFault(
                f"no cell for this exercise: none has the metadata `exercise: {exercise_id}`, "
                f"and none defines `{exercise_id}` alone. Copy the cell back from the lesson."
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
    except StudentFault as fault:
        return Submission(path, expected=_exercises_of(lesson), problem=str(fault))
    cells = tuple(_code_cells(notebook))
    return Submission(
        path,
        hashlib.sha256(data).hexdigest(),
        _expected(notebook, cells, lesson),
        cells,
    )


def _read_bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > NOTEBOOK_LIMIT:
            raise StudentFault(f"larger than {NOTEBOOK_LIMIT >> 20} MiB: clear its outputs first")
        data = path.read_bytes()
    except OSError as error:
        raise StudentFault(f"cannot be read: {error.strerror}") from None
    if not data.strip():
        raise StudentFault("the file is empty")
    return data


def _parse(data: bytes) -> dict[str, Any]:
    """The notebook in `data`: a dict whose `cells` is a list. Raises StudentFault.

    Read as JSON rather than with nbformat: a submission need not be valid in every detail to be
    graded, and the schema checker alone takes over a second to load.
    """
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise StudentFault("not a notebook: it is not UTF-8 text") from None
    except (ValueError, RecursionError):
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
            exercise if isinstance(exercise, str) else None,
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
    try:
        body = python_of(source)[1].body
        functions = [node.name for node in body if isinstance(node, ast.FunctionDef)]
        values = [target.id for node in body for target in _targets(node)]
    except SyntaxError:  # the broken cell may still be the one: go by its text
        functions = re.findall(r"^def (\w+)", source, re.MULTILINE)
        values = re.findall(r"^(\w+)\s*=(?!=)", source, re.MULTILINE)
    every = catalogue.all_exercises()
    found = set(functions) if len(functions) == 1 else set()
    found |= {name for name in values if name in every and every[name].is_value}
    return found & set(every)


def _top_level_names(source: str) -> set[str]:
    """The functions, classes and variables that a cell defines."""
    try:
        body = python_of(source)[1].body
    except SyntaxError:
        return set()
    named = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in body if isinstance(node, named)} | {
        target.id for node in body for target in _targets(node)
    }


def _targets(node: ast.stmt) -> list[ast.Name]:
    """The plain names that a statement assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target for target in targets if isinstance(target, ast.Name)]


def _required(cell: NotebookCell, label: str) -> Cell:
    try:
        source, _tree = python_of(cell.source)
    except SyntaxError as error:
        raise StudentFault(_syntax_fault(error, cell.source, label)) from None
    return Cell(label, source)


def _definitions(cell: NotebookCell) -> list[Cell]:
    """The imports, functions and classes of another exercise's cell."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    try:
        source, tree = python_of(cell.source)
    except SyntaxError:
        return []
    lines = source.splitlines()
    kept = [""] * len(lines)  # so that every line keeps its number
    for node in tree.body:
        if isinstance(node, kinds):
            decorators = getattr(node, "decorator_list", [])
            rows = slice(min(n.lineno for n in (node, *decorators)) - 1, node.end_lineno)
            kept[rows] = lines[rows]
    return [Cell(f"cell {cell.number}", "\n".join(kept), required=False)]


def python_of(source: str) -> tuple[str, ast.Module]:
    """The cell as plain Python with its lines where they were, and its syntax tree.

    Lines that start with `%` or `!` speak to the notebook, not to Python, and do nothing here.
    Raises SyntaxError.
    """
    try:
        return source, _tree_of(source)
    except SyntaxError:
        if _NOT_PYTHON.match(source) or not _MAGIC.search(source):
            raise
    stripped = _MAGIC.sub(r"\1pass", source)
    return stripped, _tree_of(stripped)


def _tree_of(source: str) -> ast.Module:
    if len(source) > SOURCE_LIMIT:
        raise SyntaxError(f"the cell is longer than {SOURCE_LIMIT:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(f"Python cannot read it ({error or 'nested too deeply'})") from None


def _syntax_fault(error: SyntaxError, source: str, label: str) -> str:
    lines = source.splitlines()
    line = error.lineno if error.lineno and error.lineno <= len(lines) else None
    text = lines[line - 1].strip()[:200] if line else ""
    where = f" in line {line}" if line else ""
    magic = source.lstrip().startswith("%%") or re.search(r"(=\s*[%!])|(\w\?\s*$)|^\s*[%!?]", text)
    hint = " This is notebook magic, not Python: take it out." if magic else ""
    message = f"syntax error{where} of {label}: {error.msg}.{hint}"
    return f"{message}\n    {text}" if text else message
