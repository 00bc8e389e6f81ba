"""The commands of `python -m autograder`: doctor, list, progress, grade.

Exit status: 0 all exercises pass, 1 something does not, 2 the command was not understood.
"""

import argparse
import json
import math
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from autograder import exercise as catalogue
from autograder.exercise import Tier
from autograder.progress_bar import progress_bar
from autograder.result import Outcome, Result

PASSED, FAILED, BAD_USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141
LEAST_MEMORY = 256 << 20  # Python and NumPy alone take about 150 MiB of address space
_UNITS = {"M": 1 << 20, "G": 1 << 30}


class BadUsage(Exception):
    """The command cannot be carried out as given; the message says what to change."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadUsage(f"{message} (see: {self.prog} --help)")


def main(arguments: Sequence[str]) -> int:
    """Carry out one command and return its exit status."""
    try:
        options = _parser().parse_args(arguments)
        _check_writable(options.json)
        return options.command(options)
    except BadUsage as problem:
        print(f"autograder: {problem}", file=sys.stderr)
        return BAD_USAGE
    except KeyboardInterrupt:
        print("autograder: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m autograder", description="Check and grade the exercises.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _add(commands, "doctor", _doctor, "what this machine has, and what will be skipped")
    _add(commands, "list", _list, "the exercises of the course")
    progress = _add(commands, "progress", _progress, "where you stand")
    progress.add_argument(
        "folder", nargs="?", type=Path, help="folder of notebooks (default: my_lessons)"
    )
    _grade_options(_add(commands, "grade", _grade, "grade notebooks, each exercise on its own"))
    return parser


def _add(
    commands: Any, name: str, command: Callable[[argparse.Namespace], int], summary: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=summary.capitalize() + ".")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome as JSON, too")
    parser.set_defaults(command=command)
    return parser


def _grade_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="+", type=Path, metavar="PATH", help="a notebook, or a folder of them")
    add("--exercise", action="append", default=[], metavar="ID", help="grade only this one")
    add("--tier", type=_tier, metavar="|".join(Tier), default=Tier.FULL, help="how much is tried")
    add(
        "--seconds",
        type=_seconds,
        metavar="S",
        default=60.0,
        help="time for one exercise (default 60)",
    )
    add(
        "--memory",
        type=_memory,
        metavar="SIZE",
        default="2G",
        help="memory for one exercise (default 2G)",
    )
    add("--seed", type=int, help="for the random fixtures (default: a secret one)")


def _tier(text: str) -> Tier:
    if text not in list(Tier):
        raise argparse.ArgumentTypeError(f"{text}: choose {' or '.join(Tier)}")
    return Tier(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text} seconds: give a time above 0")
    return seconds


def _memory(text: str) -> int:
    number, unit = text[:-1], _UNITS.get(text[-1:].upper())
    if unit is None or not number.isdecimal() or int(number) * unit < LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text}: give 256M or more, such as 512M or 2G")
    return int(number) * unit


def _doctor(options: argparse.Namespace) -> int:
    from autograder.doctor_report import doctor

    examination = doctor()
    print(examination)
    _write_json(options, {"parts": [vars(part) for part in examination.parts]})
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
    _write_json(options, {"exercises": exercises})
    return PASSED


def _progress(options: argparse.Namespace) -> int:
    from autograder.progress_table import COLUMNS, Progress

    if options.folder and not options.folder.is_dir():
        raise BadUsage(f"{options.folder} is not a folder")
    mine = Path("my_lessons") if Path("my_lessons").is_dir() else None
    progress = Progress.of(options.folder or mine)
    print(progress)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in progress.rows]
    _write_json(options, {"exercises": rows})
    return PASSED


def _grade(options: argparse.Namespace) -> int:
    if sys.platform == "win32":
        raise BadUsage("grading runs on Linux, macOS or WSL; check works in the notebook")
    from autograder.isolation.limits import Limits
    from autograder.isolation.sandbox import Sandbox
    from autograder.submission import read_submission

    _only_known(options.exercise)
    submissions = [read_submission(path) for path in _notebooks(options.paths)]
    sandbox = Sandbox(Limits(seconds=options.seconds, memory=options.memory))
    seed = secrets.randbits(63) if options.seed is None else options.seed
    graded = _grade_all(submissions, sandbox, seed, options)
    results = [result for _, results in graded for result in results]
    if not results:
        raise BadUsage(
            "nothing to grade: none of these notebooks has an exercise that was asked for"
        )
    _print_totals(graded)
    record = {"date": datetime.now(UTC).isoformat(), "tier": options.tier, "seed": seed}
    _write_json(options, record | {"submissions": [_as_json(*pair) for pair in graded]})
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
        found = [p for p in sorted(path.rglob("*.ipynb")) if ".ipynb_checkpoints" not in p.parts]
        if not found:
            raise BadUsage(f"{path} holds no notebook (*.ipynb)")
        yield from found


def _grade_all(submissions: list, sandbox: Any, seed: int, options: argparse.Namespace) -> list:
    from autograder.grading import grade_submission

    graded = []
    with progress_bar("grading", sum(len(s.expected) for s in submissions)) as advance:
        for submission in submissions:
            results = []
            if not options.exercise or set(options.exercise) & set(submission.expected):
                _print_heading(submission)
            for result in grade_submission(
                submission, sandbox, options.tier, seed, options.exercise
            ):
                _print_result(result)
                results.append(result)
                advance()
            graded.append((submission, results))
    return graded


def _print_heading(submission: Any) -> None:
    digest = f"  sha256 {submission.sha256[:12]}" if submission.sha256 else ""
    print(f"{submission.path}{digest}", flush=True)
    if not submission.expected and not submission.problem:
        print("  no exercise in this notebook")


def _print_result(result: Result) -> None:
    from autograder.report import print_lines, report_lines

    print_lines(report_lines(result), sys.stdout)
    print(flush=True)


def _print_totals(graded: list[tuple[Any, list[Result]]]) -> None:
    """A line for each notebook if there are several, and one for all."""
    totals = [(str(submission.path), _total(results)) for submission, results in graded if results]
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


def _check_writable(file: Path | None) -> None:
    """Complain before the work is done rather than after it."""
    if file and (str(file) == "-" or file.is_dir() or not file.absolute().parent.is_dir()):
        raise BadUsage(f"--json {file}: name a file in a folder that exists")


def _write_json(options: argparse.Namespace, document: dict[str, Any]) -> None:
    if options.json is None:
        return
    text = json.dumps(_strict(document), indent=1, allow_nan=False)
    try:
        options.json.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise BadUsage(f"{options.json} cannot be written: {error.strerror}") from None


def _strict(value: Any) -> Any:
    """`value` with infinities and NaN, which JSON does not know, as strings."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
