"""Reading a lesson: solutions/NN_name.py, in jupytext's py:percent format, cell by cell.

Every line remembers the file and the line it comes from, also when it was included from a
reference file, so that whatever is wrong later is reported where an author can put it right.
The reader takes the part of py:percent that lessons need; the tests hold it against jupytext.
"""

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

TAGS = ("exercise", "helper", "check", "widget")

_CELL_START = re.compile(r"# %%(?: (?P<markdown>\[markdown\]))?(?P<options>.*)")
_OPTION = re.compile(r"\s*(?P<key>\w+)=(?P<value>\"[^\"]*\"|\[[^\]]*\])")
_KINDS = {"exercise": str, "tags": list}
_FILE_NAME = re.compile(r"(?P<lesson>\d\d)_[a-z0-9_]+\.py")


class LessonError(Exception):
    """A lesson's source is wrong; the message says where and what to do."""


@dataclass(frozen=True)
class Line:
    """One line of text and where it stands: `file` relative to the course's folder."""

    text: str
    file: str
    number: int


@dataclass(frozen=True)
class Cell:
    """One cell. `marker` is its `# %%` line, `number` counts the lesson's cells from 1."""

    number: int
    marker: Line
    markdown: bool
    tags: tuple[str, ...]
    exercise: str | None
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The cell's text, without the `# %%` line."""
        return "\n".join(line.text for line in self.lines)

    def fault(self, line: Line, message: str) -> NoReturn:
        """Raise the LessonError that names file, line and cell."""
        place = f"{line.file}, line {line.number}"
        cell = f"cell {self.number}" + (f", exercise {self.exercise}" if self.exercise else "")
        if line.file != self.marker.file:
            cell = f"included by {self.marker.file}, {cell}"
        raise LessonError(f"{place} ({cell}): {message}")


@dataclass(frozen=True)
class Lesson:
    """A lesson's source: its number, the stem of its file name, and its cells."""

    number: int
    name: str
    cells: tuple[Cell, ...]

    @property
    def source(self) -> str:
        """The file it was read from, relative to the course's folder."""
        return f"solutions/{self.name}.py"


def read_lesson(path: Path) -> Lesson:
    """Read `path`, solutions/NN_name.py. Raises LessonError where it is not a lesson."""
    name = _FILE_NAME.fullmatch(path.name)
    if not name:
        raise LessonError(f"solutions/{path.name}: call it NN_name.py, in lower case")
    lines = read_lines(path, f"solutions/{path.name}")
    starts = [i for i, line in enumerate(lines) if _CELL_START.fullmatch(line.text)]
    _refuse_stray_text(lines[: starts[0]] if starts else lines)
    stops = [*starts[1:], len(lines)]
    cells = tuple(
        _read_cell(number, lines[start], lines[start + 1 : stop])
        for number, (start, stop) in enumerate(zip(starts, stops, strict=True), start=1)
    )
    return Lesson(int(name["lesson"]), path.stem, cells)


def read_lines(path: Path, name: str) -> list[Line]:
    """The lines of the text file `path`, which error messages will call `name`.

    Lines end where Python's and CUDA's do: a form feed or U+2028 ends none.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors put a mark in front
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise LessonError(f"{name}, line {number}: not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise LessonError(f"{name}: cannot be read: {error.strerror}") from None
    texts = text.removesuffix("\n").split("\n")
    return [Line(text.rstrip(), name, number) for number, text in enumerate(texts, start=1)]


def parse_python(cell: Cell, lines: Sequence[Line], otherwise: str = "not Python") -> ast.Module:
    """The syntax tree of `lines`, which `cell` holds or includes.

    Raises LessonError at the line that is not Python, saying `otherwise`.
    """
    try:
        return ast.parse("\n".join(line.text for line in lines))
    except SyntaxError as error:
        number, why = error.lineno or 1, error.msg
    except (ValueError, RecursionError) as error:
        number, why = 1, str(error)
    cell.fault(lines[min(number, len(lines)) - 1], f"{otherwise}: {why}")


def _refuse_stray_text(lines: list[Line]) -> None:
    """Before the first cell only comments may stand (jupytext's header)."""
    for line in lines:
        if line.text and not line.text.startswith("#"):
            raise LessonError(
                f"{line.file}, line {line.number}: text before the first cell; "
                "put a line `# %%` above it"
            )


def _read_cell(number: int, marker: Line, body: list[Line]) -> Cell:
    start = _CELL_START.fullmatch(marker.text)
    options, rest = _read_options(start["options"])
    exercise = options.pop("exercise", None)
    tags = options.pop("tags", [])
    if exercise is not None and "exercise" not in tags:
        tags = ["exercise", *tags]
    markdown = start["markdown"] is not None
    cell = Cell(number, marker, markdown, tuple(tags), exercise, tuple(_trim(body)))
    _refuse_bad_options(cell, options, rest)
    return _uncomment(cell) if markdown else cell


def _read_options(text: str) -> tuple[dict, str]:
    """`key="value" key=["list"]` as a dict, and what could not be read."""
    options, position = {}, 0
    while match := _OPTION.match(text, position):
        try:
            value = json.loads(match["value"])
        except ValueError:
            break
        if not isinstance(value, _KINDS.get(match["key"], object)):
            break
        options[match["key"]] = value
        position = match.end()
    return options, text[position:].strip()


def _refuse_bad_options(cell: Cell, options: dict, rest: str) -> None:
    if options or rest:
        what = ", ".join([*options, *([rest] if rest else [])])
        cell.fault(
            cell.marker, f'unknown option {what!r}; there are exercise="ID" and tags=["TAG"]'
        )
    for tag in cell.tags:
        if tag not in TAGS:
            cell.fault(cell.marker, f"unknown tag {tag!r}; there are {', '.join(TAGS)}")
    if "exercise" in cell.tags and cell.exercise is None:
        cell.fault(cell.marker, 'which exercise? write `# %% exercise="ID"`')
    if cell.exercise is not None and not cell.exercise.isidentifier():
        cell.fault(cell.marker, f"{cell.exercise!r} is no id; it is the name that is asked for")
    if "exercise" in cell.tags and cell.markdown:
        cell.fault(cell.marker, "an exercise is a code cell, not a [markdown] cell")
    if not cell.lines:
        cell.fault(cell.marker, "the cell is empty; write it or take the line out")


def _trim(lines: list[Line]) -> list[Line]:
    """The lines without blank ones at either end."""
    written = [i for i, line in enumerate(lines) if line.text]
    return lines[written[0] : written[-1] + 1] if written else []


def _uncomment(cell: Cell) -> Cell:
    """A markdown cell with the leading `# ` of each line taken off."""
    for line in cell.lines:
        if line.text and line.text != "#" and not line.text.startswith("# "):
            cell.fault(line, "in a [markdown] cell every line starts with `# `")
    lines = (Line(line.text[2:], line.file, line.number) for line in cell.lines)
    return Cell(cell.number, cell.marker, True, cell.tags, None, tuple(lines))
