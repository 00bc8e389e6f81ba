"""Give the student a copy of the lessons to write in, and never touch what is written there.

Run as `python -m lessons.student_copy` (`make start`).
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from lessons.notebook import BANNER_ID, notebook_text

COURSE = Path(__file__).resolve().parents[1]
BANNER = "*This copy is yours: write in it. Nothing overwrites it.*"


class CopyError(Exception):
    """The copy cannot be made; the message says why and what to do."""


def copy_lessons(root: Path = COURSE) -> tuple[list[str], list[str]]:
    """Copy lessons/*.ipynb to my_lessons/ below `root`.

    Returns the names of the notebooks that were added and of those that were there already and
    are kept as they are. Raises CopyError when there is nothing to copy, nowhere to put it, or a
    file that is no notebook.
    """
    lessons = sorted((root / "lessons").glob("*.ipynb"))
    if not lessons:
        raise CopyError("lessons/ holds no notebook; run `make lessons` first")
    mine = _own_folder(root)
    added, kept = [], []
    for lesson in lessons:
        copied = _copy_new(lesson, mine / lesson.name)
        (added if copied else kept).append(lesson.name)
    return added, kept


def _own_folder(root: Path) -> Path:
    mine = root / "my_lessons"
    if (mine.exists() or mine.is_symlink()) and not mine.is_dir():
        what = "a link that leads nowhere" if mine.is_symlink() else "a file"
        raise CopyError(f"my_lessons is {what}; move it away, its place is for the copy")
    try:
        mine.mkdir(exist_ok=True)
    except OSError as error:
        raise CopyError(f"my_lessons cannot be made: {error.strerror}") from None
    return mine


def _copy_new(lesson: Path, mine: Path) -> bool:
    """Copy, unless something is there: mode "x" cannot overwrite, whoever else is writing."""
    text = _with_own_banner(lesson)
    try:
        with mine.open("xb") as file:
            file.write(text.encode())
    except FileExistsError:
        return False
    except OSError as error:
        raise CopyError(f"my_lessons/{mine.name} cannot be written: {error.strerror}") from None
    return True


def _with_own_banner(lesson: Path) -> str:
    """The lesson, whose first cell tells authors where it comes from, with one for its owner."""
    try:
        notebook = json.loads(lesson.read_bytes())
        for cell in notebook["cells"]:
            if cell.get("id") == BANNER_ID:
                cell["source"] = [BANNER]
    except OSError as error:
        raise CopyError(f"lessons/{lesson.name} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CopyError(f"lessons/{lesson.name} is no notebook; run `make lessons`") from None
    return notebook_text(notebook)


def main(arguments: Sequence[str] | None = None, *, root: Path = COURSE) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lessons.student_copy",
        description="Copy the lessons to my_lessons/. What is there already is never overwritten.",
    )
    parser.add_argument("--quiet", action="store_true", help="say only what was added")
    options = parser.parse_args(arguments)
    try:
        added, kept = copy_lessons(root)
    except CopyError as error:
        print(error, file=sys.stderr)
        return 1
    for name in added:
        print(f"added my_lessons/{name}")
    if not options.quiet:
        _say_what_is_next(kept)
    return 0


def _say_what_is_next(kept: list[str]) -> None:
    for name in kept:
        print(f"kept  my_lessons/{name} (yours, untouched)")
    print("Now run `make lab`. To start a lesson afresh, rename your copy, then `make start`.")


if __name__ == "__main__":
    sys.exit(main())
