"""The commands of `python -m autograder`: doctor, list, progress, grade.

Exit status: 0 all exercises pass, 1 something does not, 2 the command could not be carried out,
128 + n when signal n stopped it.
"""

import argparse
import json
import math
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, TextIO

from autograder import exercise as catalogue
from autograder.command_options import BadUsage, read_options
from autograder.faults import printable
from autograder.progress_bar import progress_bar
from autograder.result import Outcome, Result
from autograder.standard_streams import discard_output, prepare_streams
from autograder.stopping import Stopped, stoppable

PASSED, FAILED, BAD_USAGE, PIPE_CLOSED = 0, 1, 2, 141


def main(arguments: Sequence[str]) -> int:
    """Carry out one command and return its exit status."""
    prepare_streams()
    try:
        with stoppable():
            return _carry_out(arguments)
    except BadUsage as problem:
        return _refusal(str(problem), BAD_USAGE)
    except Stopped as stopped:
        return _refusal(str(stopped), 128 + stopped.number)
    except BrokenPipeError:  # whoever read our output, `head` say, has seen enough
        discard_output()
        return PIPE_CLOSED
    except OSError as error:  # a file, or stdout itself, that cannot be read or written
        discard_output()
        where = f": {error.filename}" if error.filename else ""
        return _refusal(f"{error.strerror or error}{where}", BAD_USAGE)


def _carry_out(arguments: Sequence[str]) -> int:
    commands = {"doctor": _doctor, "list": _list, "progress": _progress, "grade": _grade}
    try:
        options = read_options(arguments)
        return commands[options.command](options)
    finally:
        sys.stdout.flush()  # while what goes wrong can still be said


def _refusal(why: str, status: int) -> int:
    with suppress(OSError):  # stderr may be on the disk that is full
        print(f"autograder: {_one_line(why)}", file=sys.stderr)
    return status


def _one_line(text: object) -> str:
    """What can be shown of a text that others chose, such as the name of a file."""
    return printable(str(text)).replace("\n", "\\n")


def _doctor(options: argparse.Namespace) -> int:
    from autograder.doctor_report import doctor

    examination = doctor()
    print(examination)
    _write_json(options.json, {"parts": [vars(part) for part in examination.parts]})
    return PASSED


def _list(options: argparse.Namespace) -> int:
    exercises = [
        {
            "lesson": e.lesson,
            "id": e.id,
            "title": e.title,
            "signature": e.signature,
            "points": e.points.total,
        }
        for e in catalogue.all_exercises().values()
    ]
    for row in exercises:
        print(f"{row['lesson']:02}  {row['id']:<24}{row['points']:>3g} points  {row['title']}")
    _write_json(options.json, {"exercises": exercises})
    return PASSED


def _progress(options: argparse.Namespace) -> int:
    from autograder.progress_table import COLUMNS, Progress

    if options.folder and not options.folder.is_dir():
        raise BadUsage(f"{options.folder} is not a folder")
    mine = Path("my_lessons") if Path("my_lessons").is_dir() else None
    progress = Progress.of(options.folder or mine)
    print(progress)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in progress.rows]
    _write_json(options.json, {"exercises": rows})
    return PASSED


def _grade(options: argparse.Namespace) -> int:
    if sys.platform == "win32":
        raise BadUsage("grading runs on Linux, macOS or WSL; check works in the notebook")
    from autograder.submission import read_submission

    _only_known(options.exercise)
    notebooks = list(_notebooks(options.paths))
    _check_writable(options.json, notebooks)
    if options.seed is None:
        options.seed = secrets.randbits(63)
    graded: list[tuple[Any, list[Result]]] = []
    try:
        _grade_all([read_submission(path) for path in notebooks], options, graded)
    finally:  # stopped half-way, what has been graded is still written
        _write_json(options.json, _record(options, graded))
    results = [result for _, results in graded for result in results]
    if not results:
        raise BadUsage(
            "nothing to grade: none of these notebooks has an exercise that was asked for"
        )
    _print_totals(graded)
    return PASSED if all(result.outcome is Outcome.PASS for result in results) else FAILED


def _only_known(wanted: list[str]) -> None:
    for name in wanted:
        if name not in catalogue.all_exercises():
            known = ", ".join(catalogue.all_exercises())
            raise BadUsage(f"no exercise is called {name!r}; there are: {known}")


def _notebooks(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise BadUsage(f"{path} does not exist")
        if not path.is_dir():
            yield path
            continue
        found = _notebooks_below(path)
        if not found:
            raise BadUsage(f"{path} holds no notebook (*.ipynb)")
        yield from found


def _notebooks_below(folder: Path) -> list[Path]:
    """In order of name; a folder that cannot be read is an error, not one notebook less."""
    walk = os.walk(folder, onerror=_raise)
    paths = [Path(inside, name) for inside, _, names in walk for name in names]
    found = [path for path in paths if path.suffix == ".ipynb"]
    return sorted(path for path in found if ".ipynb_checkpoints" not in path.parts)


def _raise(error: OSError) -> NoReturn:
    raise error


def _grade_all(submissions: list, options: argparse.Namespace, graded: list) -> None:
    """Grade and print; each submission's results are in `graded` as they come."""
    from autograder.grading import grade_submission
    from autograder.isolation.limits import Limits
    from autograder.isolation.sandbox import Sandbox
    from autograder.isolation.wall import NO_WALL, NOTICE

    sandbox = Sandbox(Limits(seconds=options.seconds, memory=options.memory))
    if sandbox.wall is NO_WALL:
        print(f"autograder: {NOTICE}", file=sys.stderr)
    with progress_bar("grading", sum(len(s.expected) for s in submissions)) as advance:
        for submission in submissions:
            results: list[Result] = []
            graded.append((submission, results))
            if not options.exercise or set(options.exercise) & set(submission.expected):
                _print_heading(submission)
            for result in grade_submission(
                submission, sandbox, options.tier, options.seed, options.exercise
            ):
                results.append(result)
                _print_result(result)
                advance()


def _print_heading(submission: Any) -> None:
    digest = f"  sha256 {submission.sha256[:12]}" if submission.sha256 else ""
    print(f"{_one_line(submission.path)}{digest}", flush=True)
    if not submission.expected and not submission.problem:
        print("  no exercise in this notebook")


def _print_result(result: Result) -> None:
    from autograder.report import print_lines, report_lines

    print_lines(report_lines(result), sys.stdout)
    print(flush=True)


def _print_totals(graded: list[tuple[Any, list[Result]]]) -> None:
    """A line for each notebook if there are several, and one for all."""
    totals = [(_one_line(owner.path), _total(results)) for owner, results in graded if results]
    if len(totals) > 1:
        totals.append(("all", _total([result for _, results in graded for result in results])))
    width = max(len(name) for name, _ in totals)
    for name, (passed, tried, earned, possible) in totals:
        label = f"{name:<{width}}  " if len(totals) > 1 else ""
        print(f"{label}{passed} of {tried} exercises pass, {earned:g} of {possible:g} points")


def _total(results: list[Result]) -> tuple[int, int, float, float]:
    """Exercises passed and tried, points earned and possible."""
    passed = sum(result.outcome is Outcome.PASS for result in results)
    earned = round(sum(result.earned.total for result in results), 2)
    return passed, len(results), earned, sum(result.possible.total for result in results)


def _record(options: argparse.Namespace, graded: list[tuple[Any, list[Result]]]) -> dict:
    submissions = [_as_json(*pair) for pair in graded]
    date = datetime.now(UTC).isoformat()
    return {"date": date, "tier": options.tier, "seed": options.seed, "submissions": submissions}


def _as_json(submission: Any, results: list[Result]) -> dict[str, Any]:
    _, _, earned, possible = _total(results)
    return {
        "path": str(submission.path),
        "sha256": submission.sha256,
        "problem": submission.problem,
        "earned": earned,
        "possible": possible,
        "results": [result.to_dict() for result in results],
    }


def _check_writable(file: Path | None, notebooks: list[Path]) -> None:
    """Complain before the work is done rather than after it, and spare what is to be graded."""
    if file is None or file.is_fifo():  # opening that twice would end it for its reader
        return
    if file.exists() and any(path.exists() and path.samefile(file) for path in notebooks):
        raise BadUsage(f"--json {file} is a notebook to be graded; name another file")
    with _written(file, "a"):
        pass


def _write_json(file: Path | None, document: dict[str, Any]) -> None:
    if file:
        with _written(file, "w") as out:
            json.dump(_strict(document), out, indent=1, allow_nan=False)
            out.write("\n")


@contextmanager
def _written(file: Path, mode: str) -> Iterator[TextIO]:
    if str(file) == "-":
        raise BadUsage("--json -: name a file")
    try:
        with file.open(mode, encoding="utf-8") as out:
            yield out
    except OSError as error:
        place = "name a file that can be written, in a folder that exists"
        raise BadUsage(f"--json: {error.strerror}; {place}, not {file}") from None


def _strict(value: Any) -> Any:
    """`value` with infinities and NaN, which JSON does not know, as strings."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
