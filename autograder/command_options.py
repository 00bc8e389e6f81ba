"""What can be written after `python -m autograder`, and what each option may be."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from autograder.exercise import Tier

LEAST_MEMORY = 256 << 20  # Python and NumPy alone take about 150 MiB of address space
_UNITS = {"M": 1 << 20, "G": 1 << 30}


class BadUsage(Exception):
    """The command cannot be carried out as given; the message says what to change."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadUsage(f"{message} (see: {self.prog} --help)")


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """The options; `command` is doctor, list, progress or grade.

    Raises BadUsage, and SystemExit after `--help`.
    """
    parser = _Parser(prog="python -m autograder", description="Check and grade the exercises.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _add(commands, "doctor", "what this machine has, and what will be skipped")
    _add(commands, "list", "the exercises of the course")
    progress = _add(commands, "progress", "where you stand")
    progress.add_argument(
        "folder", nargs="?", type=_path, help="folder of notebooks (default: my_lessons)"
    )
    _grade_options(_add(commands, "grade", "grade notebooks, each exercise on its own"))
    return parser.parse_args(arguments)


def _add(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=summary.capitalize() + ".")
    parser.add_argument("--json", type=_path, metavar="FILE", help="write the outcome as JSON, too")
    parser.set_defaults(command=name)
    return parser


def _grade_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="+", type=_path, metavar="PATH", help="a notebook, or a folder of them")
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
    add("--seed", type=_seed, help="for the random fixtures (default: a secret one)")


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("'' names no file; for the current folder write .")
    return Path(text)


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


def _seed(text: str) -> int:
    if not text.isdecimal() or len(text) > 100:
        raise argparse.ArgumentTypeError(f"{text}: give a whole number, 0 or above")
    return int(text)
