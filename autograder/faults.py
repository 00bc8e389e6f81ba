"""What went wrong in a student's code, in the student's terms: which line, and what it said."""

import errno
import linecache
import re
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import numpy as np

MESSAGE_LENGTH = 1000
COURSE = Path(__file__).resolve().parent.parent
_NOT_THE_STUDENTS = tuple(
    str(path)
    for path in (
        COURSE / "reference_numpy",
        COURSE / "autograder",
        Path(np.__file__).parent,
        sysconfig.get_paths()["stdlib"],
        "<frozen ",
        "<__array_function__",
    )
)


def is_students(filename: str) -> bool:
    """Whether code from `filename` was written by the student: not the course, NumPy or Python."""
    return not filename.startswith(_NOT_THE_STUDENTS)


def describe(error: BaseException, own: Callable[[str], bool] = is_students) -> str:
    """One line for what was raised and where, and the student's own line of code under it.

    `own` says of a file name whether the student wrote what is in it.
    """
    place = _innermost(error.__traceback__, own)
    if isinstance(error, SyntaxError) and error.lineno and own(error.filename or ""):
        place = (error.filename, error.lineno)
    if place is None:
        return _what(error)
    filename, line = place
    source = linecache.getline(filename, line).strip()[:200]
    head = f"{_kind(error)} in line {line} of {_place_name(filename)}: {_said(error)}"
    return f"{head}\n    {source}" if source else head


def _innermost(
    traceback: TracebackType | None, own: Callable[[str], bool]
) -> tuple[str, int] | None:
    place = None
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if own(filename):
            place = (filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return place


def _place_name(filename: str) -> str:
    if "ipykernel" in filename or filename.startswith("<ipython"):
        return "your cell"
    if filename.startswith("<"):
        return filename.strip("<>")
    return Path(filename).name


def _kind(error: BaseException) -> str:
    return type(error).__name__.lstrip("_")[:80]


def _what(error: BaseException) -> str:
    return f"{_kind(error)}: {_said(error)}"


def _said(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return "the code asked Python to exit; a kernel returns instead"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return "it printed or wrote more than the grader keeps; take out the print"
    if type(error) is MemoryError:
        return f"out of memory ({_text(error) or 'the limit was reached'})"
    if isinstance(error, SyntaxError):
        return f"{error.msg}{_NOTEBOOK_ONLY if _is_top_level_await(error) else ''}"
    missing = getattr(error, "name", None) or ""
    if isinstance(error, ImportError) and str(missing).split(".")[0] in _COURSE_PACKAGES:
        return f"{_text(error)}. While grading only NumPy and the names of the prelude are there"
    return _text(error) or "(no message)"


_NOTEBOOK_ONLY = ". A notebook awaits at the top level, grading does not: take it out of the cell"


def _is_top_level_await(error: SyntaxError) -> bool:
    return bool(re.match(r"('await'|asynchronous comprehension|'async \w+') outside", error.msg))


_COURSE_PACKAGES = ("autograder", "reference_numpy", "cupy_kernels", "lessons", "solutions")


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # a student's __str__ may do anything
        return "(its message could not be read)"
    return text if len(text) <= MESSAGE_LENGTH else text[:MESSAGE_LENGTH] + " …"


def printable(text: str, limit: int = 2 * MESSAGE_LENGTH) -> str:
    """`text` cut to `limit`, with control characters (terminal escapes) made visible."""
    shown = "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text[:limit])
    return shown if len(text) <= limit else shown + " …"


def in_cell(filename: str) -> bool:
    """Whether code comes from a submitted cell, which the child names `<...cell...>`."""
    return filename.startswith("<") and "cell" in filename


def remember_source(filename: str, source: str) -> None:
    """Let `describe` quote the lines of a cell that is in no file."""
    lines = [f"{line}\n" for line in source.split("\n")]  # Python's lines: a form feed ends none
    linecache.cache[filename] = (len(source), None, lines, filename)
