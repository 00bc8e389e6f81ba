"""Grade two notebooks before your eyes: a solved lesson, and the same without one factor.

Run as `python -m autograder.demo` (`make demo`). Exit status 0 when the first passes and the
second fails for what is wrong with it.
"""

import contextlib
import json
import sys
import tempfile
from pathlib import Path

from autograder.command_line import FAILED, PASSED, main

COURSE = Path(__file__).resolve().parents[1]
EXERCISE = "flash1_forward"
RIGHT = "divide_rows(keep[:, None] * o_old"
WRONG = "divide_rows(l_old[:, None] * o_old"
SEED = "3"  # the same figures at every run


class DemoError(Exception):
    """The demo cannot run as it is meant to; the message says what came out otherwise."""


def demo(course: Path = COURSE) -> None:
    """Print both gradings. Raises DemoError when one does not come out as it should."""
    solved = _solved_lesson(course)
    print(f"1. Lesson 03, solved (solutions/{solved.name})\n")
    _graded(solved, PASSED)
    print("\n2. The same, but O is not rescaled when a larger maximum comes along\n")
    print(f"   - ... {RIGHT} ...\n   + ... {WRONG} ...\n")
    with tempfile.TemporaryDirectory() as folder:
        wrong = Path(folder) / f"{solved.stem}_without_rescaling.ipynb"
        wrong.write_text(_without_rescaling(solved), encoding="utf-8")
        broken = _broken_invariants(_graded(wrong, FAILED))
    print(f'\nBoth came out as they should: the second breaks "{broken[0]}"', end="")
    print(f" and {len(broken) - 1} more." if broken[1:] else ".")


def _solved_lesson(course: Path) -> Path:
    found = sorted((course / "solutions").glob("03_*.ipynb"))
    if not found:
        raise DemoError("solutions/ has no notebook of lesson 03; `make lessons` builds it")
    return found[0]


def _without_rescaling(solved: Path) -> str:
    """The notebook with the factor on the old O removed from the exercise."""
    notebook = json.loads(solved.read_text(encoding="utf-8"))
    cells = [c for c in notebook["cells"] if c["metadata"].get("exercise") == EXERCISE]
    text = "".join("".join(cell["source"]) for cell in cells)
    if len(cells) != 1 or text.count(RIGHT) != 1:
        raise DemoError(f"{solved.name}: {EXERCISE} no longer says {RIGHT!r} once; adapt the demo")
    cells[0]["source"] = text.replace(RIGHT, WRONG).splitlines(keepends=True)
    return json.dumps(notebook)


def _graded(notebook: Path, expected: int) -> dict:
    """What `autograder grade` says of a notebook, printed and returned."""
    # From its own folder, so that its name is printed and no folder that is gone a moment later.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(notebook.parent):
        record = Path(folder) / "grade.json"
        status = main(["grade", notebook.name, "--seed", SEED, "--json", str(record)])
        if status != expected:
            raise DemoError(f"{notebook.name}: exit status {status}, expected {expected}")
        return json.loads(record.read_text(encoding="utf-8"))


def _broken_invariants(grading: dict) -> list[str]:
    """The invariants that the grading found broken, in the order they were tried."""
    results = [r for submission in grading["submissions"] for r in submission["results"]]
    findings = [f for r in results if r["exercise"] == EXERCISE for f in r["findings"]]
    broken = list(dict.fromkeys(f["invariant"] for f in findings if not f["passed"]))
    if not broken:
        raise DemoError(f"{EXERCISE} without rescaling failed, but no invariant was named")
    return broken


if __name__ == "__main__":
    try:
        demo()
    except DemoError as error:
        sys.exit(f"demo: {error}")
