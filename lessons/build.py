"""Build the notebooks of every lesson from its one source, or check that they are built.

    solutions/NN_name.py  →  lessons/NN_name.ipynb (to be solved) and solutions/NN_name.ipynb

Run as `python -m lessons.build [--check]`.
"""

import argparse
import sys
import tomllib
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from pathlib import Path

from lessons.notebook import Notebooks, build_notebooks, files_of, validate
from lessons.source import LessonError, read_lesson
from lessons.up_to_date import problems, text_of

COURSE = Path(__file__).resolve().parents[1]


def build_all(root: Path = COURSE) -> list[Notebooks]:
    """The notebooks of every lesson below `root`, built in memory.

    Raises LessonError, naming file, line and cell, for the first thing that is wrong in a source.
    """
    sources = sorted((root / "solutions").glob("*.py"))
    if not sources:
        raise LessonError("solutions/ holds no NN_name.py to build a lesson from")
    repository = repository_address(root)
    lessons = [read_lesson(path) for path in sources]
    for one, other in pairwise(lessons):
        if one.number == other.number:
            raise LessonError(f"{one.source} and {other.source} are both lesson {one.number:02}")
    return [build_notebooks(lesson, root, repository) for lesson in lessons]


def repository_address(root: Path) -> str:
    """[project.urls] Repository of pyproject.toml, the one place for it; empty if not set."""
    path = root / "pyproject.toml"
    if not path.exists():
        return ""
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
        return str(project.get("urls", {}).get("Repository", ""))
    except (OSError, ValueError, AttributeError) as error:
        raise LessonError(f"pyproject.toml, where the repository is: {error}") from None


def write(lessons: list[Notebooks], root: Path = COURSE) -> list[str]:
    """Write the notebooks that are not yet as built; returns their names."""
    written = []
    for name, text in files_of(lessons).items():
        if text_of(root / name) != text:
            validate(name, text)
            _write_file(root, name, text)
            written.append(name)
    return written


def _write_file(root: Path, name: str, text: str) -> None:
    try:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(text.encode())
    except OSError as error:
        raise LessonError(f"{name}: cannot be written: {error.strerror}") from None


def registered_exercises() -> Collection[str]:
    """Ids of the exercises that can be graded."""
    # Importing the exercises costs time that building does not need.
    from autograder.exercise import all_exercises

    return all_exercises()


def main(
    arguments: Sequence[str] | None = None,
    *,
    root: Path = COURSE,
    known_exercises: Callable[[], Collection[str]] = registered_exercises,
) -> int:
    """Run the command; returns its exit status: 0 all well, 1 something is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m lessons.build",
        description="Make lessons/NN_name.ipynb and solutions/NN_name.ipynb from each "
        "solutions/NN_name.py.",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit 1 when a notebook is stale, edited by hand or without a source, "
        "when solving does more than fill the marked places, or when an exercise is missing",
    )
    options = parser.parse_args(arguments)
    try:
        lessons = build_all(root)
        return _check(lessons, known_exercises(), root) if options.check else _build(lessons, root)
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1


def _build(lessons: list[Notebooks], root: Path) -> int:
    written = write(lessons, root)
    for name in written:
        print(f"wrote {name}")
    print(f"{len(lessons)} lessons built, {2 * len(lessons) - len(written)} notebooks unchanged")
    return 0


def _check(lessons: list[Notebooks], known: Collection[str], root: Path) -> int:
    found = problems(lessons, known, root)
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        print("`make lessons` builds what is stale.", file=sys.stderr)
        return 1
    exercises = sum(len(lesson.exercises) for lesson in lessons)
    print(f"{len(lessons)} lessons with {exercises} exercises are as their sources say")
    return 0


if __name__ == "__main__":
    sys.exit(main())
