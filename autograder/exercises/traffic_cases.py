"""How the bytes of a run on the model machine are judged, array by array."""

from collections.abc import Iterator
from dataclasses import dataclass

from autograder.location import read_too_early
from autograder.result import TrafficFinding
from reference_numpy.io_complexity import IO, Moved
from reference_numpy.machine import Machine

FP32_BYTES = 4


@dataclass(frozen=True)
class Bounds:
    """Closed forms for one run, in elements: what each array moves at least and at most."""

    lower: IO
    upper: IO


def exactly(io: IO, **lower: Moved) -> Bounds:
    """Bounds that meet, except for the arrays named in `lower`, which may move less."""
    return Bounds(lower=io | lower, upper=io)


def judge_traffic(
    machine: Machine, bounds: Bounds, *, every_tile: Bounds, label: str
) -> Iterator[TrafficFinding]:
    """One finding for every array and direction that moves, or should, anything.

    Args:
        machine: after the run.
        bounds: what may move.
        every_tile: what would move if no tile were skipped; tells who visits masked tiles.
        label: the fixture's name in the report.
    """
    for array, moved in machine.traffic.arrays.items():
        for direction in ("read", "written"):
            measured = getattr(moved, direction)
            least, most = _limits(bounds, array, direction)
            if not measured and not most:
                continue
            cause = ""
            if not least <= measured <= most:
                unmasked = _limits(every_tile, array, direction)[1]
                cause = _cause(machine, array, direction, measured, least, most, unmasked)
            yield TrafficFinding(array, direction, measured, least, most, label, cause)


def _limits(bounds: Bounds, array: str, direction: str) -> tuple[int, int]:
    lower, upper = bounds.lower.get(array, Moved()), bounds.upper.get(array, Moved())
    return FP32_BYTES * getattr(lower, direction), FP32_BYTES * getattr(upper, direction)


def _cause(
    machine: Machine,
    array: str,
    direction: str,
    measured: int,
    least: int,
    most: int,
    unmasked: int,
) -> str:
    if most == 0:
        return f"{array} is not {direction} by this algorithm at all"
    if measured < least:
        kept = "kept on chip where it does not fit" if direction == "read" else "not all stored"
        return f"{array} is {kept}, or part of the work is left out"
    if measured == unmasked:
        return f"{array} is {direction} for tiles that the mask hides: skip those"
    if direction == "read" and read_too_early(machine).startswith(f"{array}["):
        return read_too_early(machine)
    how_often = f"{array} is {direction} {measured / most:.2f} times as often as it needs to be"
    if direction == "read":
        how_often += ": is a load inside a loop it does not depend on?"
    return how_often
