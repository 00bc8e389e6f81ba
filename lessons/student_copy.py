"""Give the student a copy of the lessons to write in, and never touch what is written there.

Run as `python -m lessons.student_copy` (`make start`).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

COURSE = Path(__file__).resolve().parents[1]


class CopyError(Exception):
    """The copy cannot be made; the message says why and what to do."""


def copy_lessons(root: Path = COURSE) -> tuple[list[str], list[str]]:
    """Copy lessons/*.ipynb to my_lessons/ below `root`.

    Returns the names of the notebooks that were added and of those that were there already and
    are kept as they are. Raises CopyError when there is nothing to copy or nowhere to put it.
    """
    lessons = sorted((root / "lessons").glob("*.ipynb"))
    if not lessons:
        raise CopyError("lessons/ holds no notebook; run `make lessons` first")
    mine = root / "my_lessons"
    if mine.exists() and not mine.is_dir():
        raise CopyError("my_lessons is a file; move it away, its place is for the copy")
    mine.mkdir(exist_ok=True)
    added, kept = [], []
    for lesson in lessons:
        copied = _copy_new(lesson, mine / lesson.name)
        (added if copied else kept).append(lesson.name)
    return added, kept


def _copy_new(lesson: Path, mine: Path) -> bool:
    """Copy, unless something is there: mode "x" cannot overwrite, whoever else is writing."""
    try:
        with mine.open("xb") as file:
            file.write(lesson.read_bytes())
    except FileExistsError:
        return False
    return True


def main(arguments: Sequence[str] | None = None, *, root: Path = COURSE) -> int:
    """Run the command; returns its exit status."""
    argparse.ArgumentParser(
        prog="python -m lessons.student_copy",
        description="Copy the lessons to my_lessons/. What is there already is never overwritten.",
    ).parse_args(arguments)
    try:
        added, kept = copy_lessons(root)
    except CopyError as error:
        print(error, file=sys.stderr)
        return 1
    for name in added:
        print(f"added my_lessons/{name}")
    for name in kept:
        print(f"kept  my_lessons/{name} (yours, untouched)")
    print("Now run `make lab`. To start a lesson afresh, rename your copy and run this again.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
