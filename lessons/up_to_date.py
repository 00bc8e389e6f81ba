"""Are the notebooks that lie in the course what their sources say, and fit to be handed out?"""

import difflib
import json
from collections.abc import Collection
from pathlib import Path

from lessons.faithful import unfaithful
from lessons.notebook import Notebooks, files_of
from lessons.source import LessonError

DIFF_LINES = 16


def problems(lessons: list[Notebooks], known_exercises: Collection[str], root: Path) -> list[str]:
    """What is wrong with the notebooks below `root`; writes nothing.

    Args:
        lessons: the notebooks as they ought to be.
        known_exercises: ids of the exercises that can be graded.
        root: the course's folder.
    """
    found = [_stale(name, text, text_of(root / name)) for name, text in files_of(lessons).items()]
    found += _orphans(lessons, root)
    for lesson in lessons:
        found += _exercise_problems(lesson, known_exercises)
        found += _faithfulness(lesson, root)
    return [problem for problem in found if problem]


def text_of(path: Path) -> str | None:
    """The text of `path` byte for byte, or None when there is no such file."""
    try:
        return path.read_bytes().decode(errors="replace") if path.is_file() else None
    except OSError as error:
        raise LessonError(f"{path}: cannot be read: {error.strerror}") from None


def _stale(name: str, built: str, there: str | None) -> str:
    if there is None:
        return f"{name}: not built yet"
    if there == built:
        return ""
    diff = difflib.unified_diff(
        there.splitlines(), built.splitlines(), name, "as its source says", n=1, lineterm=""
    )
    lines = [line[:160] for line in diff]
    if len(lines) > DIFF_LINES:
        lines[DIFF_LINES:] = [f"... and {len(lines) - DIFF_LINES} more lines"]
    headline = f"{name}: stale, or edited by hand (its source is what to edit)"
    return "\n  ".join([headline, *lines])


def _orphans(lessons: list[Notebooks], root: Path) -> list[str]:
    built = files_of(lessons)
    return [
        f"{folder}/{path.name}: no solutions/{path.stem}.py to build it from; delete it"
        for folder in ("lessons", "solutions")
        for path in sorted((root / folder).glob("*.ipynb"))
        if f"{folder}/{path.name}" not in built
    ]


def _exercise_problems(lesson: Notebooks, known: Collection[str]) -> list[str]:
    source = f"solutions/{lesson.name}.py"
    if not lesson.exercises:
        return [f"{source}: asks no exercise; a lesson has at least one"]
    return [
        f"{source}: exercise {exercise!r} is unknown to autograder.exercise; "
        f"there are {', '.join(known) or 'none'}"
        for exercise in lesson.exercises
        if exercise not in known
    ]


def _faithfulness(lesson: Notebooks, root: Path) -> list[str]:
    try:
        student, solved = (json.loads(text_of(root / name) or "{}") for name in lesson.files())
        return [f"{lesson.name}: {line}" for line in unfaithful(student, solved)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []  # not a notebook, or not there: reported as stale already
