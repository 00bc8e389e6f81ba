"""How a CUDA kernel is examined: launch by launch, the numbers first and then the bytes.

Fixtures of one shape are stacked along heads (or rows), so that few launches try many of them.
Traffic is counted in whole sectors, 32 bytes each: what a warp's requests really move.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.candidate import Candidate, StudentFault
from autograder.diagnosis import alike
from autograder.exactness import FORWARD_FACTOR, FORWARD_FLOOR, Budget, errors
from autograder.exercise import Evidence, Exercise, Tier
from autograder.exercises.cuda_launch import Stopped, handed_in, launch
from autograder.result import Finding, TrafficFinding

if TYPE_CHECKING:
    from cupy_kernels.simulator import ArrayTraffic
    from cupy_kernels.traffic import Traffic

SECTOR, WAVEFRONT, WARP = 32, 128, 32  # bytes, bytes, lanes
FLOATS_PER_SECTOR = 8
NEVER_STORED = np.uint32(0x7FFADBAD)  # a NaN that no arithmetic gives
SECONDS = {Tier.QUICK: 5.0, Tier.FULL: 60.0}  # for one launch

Bytes = tuple[int, int]  # at least, at most


@dataclass(frozen=True)
class Slot:
    """One fixture of a launch: its name, what it shows, and its part of every output."""

    fixture: str
    invariant: str
    part: Any = ...


@dataclass(frozen=True)
class Run:
    """One launch: what goes in, what has to come out, and what may move.

    Attributes:
        slots: the fixtures in it; the first one gives the launch its name.
        values: arguments by parameter name, outputs left out, and other sizes of the problem.
        truth, naive: for each output its float64 truth, and what a naive fp32 kernel makes of it.
        reads, writes: bytes of whole sectors that each array may move.
        floors: for each output, the error allowed on top; FORWARD_FLOOR where none is given.
        invariants: for outputs other than the first, what they show.
        shared_most: bytes that shared memory may move, 128 a wavefront; None if not judged.
        mistakes: wrong outputs by what leads to them; asked only if something is wrong.
    """

    slots: tuple[Slot, ...]
    values: Mapping[str, Any]
    truth: Mapping[str, np.ndarray]
    naive: Mapping[str, np.ndarray]
    reads: Mapping[str, Bytes]
    writes: Mapping[str, Bytes]
    floors: Mapping[str, float] = field(default_factory=dict)
    invariants: Mapping[str, str] = field(default_factory=dict)
    shared_most: int | None = None
    mistakes: Callable[[], Mapping[str, Mapping[str, np.ndarray]]] = dict

    @property
    def name(self) -> str:
        """What traffic findings call this launch."""
        return self.slots[0].fixture


Runs = Callable[[Tier, int], Iterator[Run]]


def cuda_exercise(*, kernel: str, parameters: str, runs: Runs, **described: Any) -> Exercise:
    """A CUDA exercise; `parameters` are the kernel's names, in order, between blanks."""
    names = tuple(parameters.split())
    return Exercise(
        signature=f"CudaKernel(source, grid, block) of {kernel}({', '.join(names)})",
        examine=partial(examine_kernel, name=kernel, parameters=names, runs=runs),
        is_value=True,
        kernel=kernel,
        **described,
    )


def examine_kernel(
    candidate: Candidate, tier: Tier, seed: int, *, name: str, parameters: tuple, runs: Runs
) -> Iterator[Evidence]:
    """Every launch in turn; the bytes of those that came to their end.

    Raises NotWritten, and StudentFault for what ends the exercise: no such kernel, a source that
    does not compile, a launch that never ends.
    """
    kernel = handed_in(candidate, name, parameters, tier)
    finished: list[tuple[Run, Traffic]] = []
    said: set[str] = set()
    for run in runs(tier, seed):
        outputs = {name: never_stored(truth.shape) for name, truth in run.truth.items()}
        try:
            traffic = launch(kernel, _in_hbm(run.values) | outputs, SECONDS[tier])
        except Stopped as stopped:
            yield from _not_finished(run, stopped, said)
            if stopped.fatal:
                raise StudentFault("a launch did not end; nothing more was tried") from None
            continue
        yield from judge_outputs(run, outputs)
        finished.append((run, traffic))
    for run, traffic in finished:
        yield from judge_traffic(run, traffic)


def _in_hbm(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, every array in a piece of memory of its own, which starts at a sector."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def never_stored(shape: tuple[int, ...]) -> np.ndarray:
    """An output as a kernel finds it: a float32 array that shows which elements it leaves out."""
    return np.full(shape, NEVER_STORED).view(np.float32)


def _not_finished(run: Run, stopped: Stopped, said: set[str]) -> Iterator[Finding]:
    """The first fixture tells what happened; a fault that was told already is only named."""
    first, *others = run.slots
    told = f"{stopped.brief}, as above" if stopped.brief in said else str(stopped)
    said.add(stopped.brief)
    yield Finding(first.invariant, False, first.fixture, told, stopped.cause)
    for slot in others:
        yield Finding(slot.invariant, False, slot.fixture, "in the same launch, which was stopped")


def judge_outputs(run: Run, outputs: Mapping[str, np.ndarray]) -> Iterator[Finding]:
    """A finding for every fixture of the launch and every output."""
    main = next(iter(run.truth))
    for name, got in outputs.items():
        floor = run.floors.get(name, FORWARD_FLOOR)
        for slot in run.slots:
            truth, naive = run.truth[name][slot.part], run.naive[name][slot.part]
            budget = Budget.of(truth, naive, factor=FORWARD_FACTOR, floor=floor)
            invariant = slot.invariant if name == main else run.invariants[name]
            yield _compare(run, slot, name, got, budget, invariant)


def _compare(
    run: Run, slot: Slot, name: str, whole: np.ndarray, budget: Budget, invariant: str
) -> Finding:
    got = whole[slot.part]
    worst = float(errors(got, budget.truth).max())
    if budget.accepts(got):
        return Finding(invariant, True, slot.fixture, error=worst, allowed=budget.allowed)
    cause = _left_out(name, got) or _mistake(run, slot, name, whole)
    where = locate(name, got, budget)
    return Finding(invariant, False, slot.fixture, where, cause, worst, budget.allowed)


def locate(name: str, got: np.ndarray, budget: Budget) -> str:
    """How many elements are wrong, in which rows, and the worst one: what it is and should be."""
    error = errors(got, budget.truth)
    wrong = error > budget.allowed
    worst = np.unravel_index(np.argmax(error), error.shape)
    by_row = wrong.reshape(-1, wrong.shape[-1]).any(axis=1)
    place = f" in {by_row.sum():,} of {by_row.size:,} rows" if wrong.ndim > 1 else ""
    return (
        f"{name}: {wrong.sum():,} of {wrong.size:,} elements wrong{place}; worst "
        f"{name}[{', '.join(map(str, worst))}] is {got[worst]:.6g}, it should be "
        f"{budget.truth[worst]:.6g} (allowed ±{budget.allowed:.1e})"
    )


def _left_out(name: str, got: np.ndarray) -> str:
    missing = np.ascontiguousarray(got).view(np.uint32) == NEVER_STORED
    if not missing.any():
        return ""
    first = ", ".join(str(indices[0]) for indices in np.nonzero(missing))
    how_many = "is" if missing.all() else f"and {missing.sum() - 1:,} more are"
    what = f"nothing of {name}" if missing.all() else f"{name}[{first}]"
    return f"{what} {how_many} never stored: does the grid cover every element, and the guard?"


def _mistake(run: Run, slot: Slot, name: str, got: np.ndarray) -> str:
    """The mistake that explains this output in the whole launch, or else in this fixture."""
    wrong = {text: outputs[name] for text, outputs in run.mistakes().items() if name in outputs}
    for part in (..., slot.part):
        for text, result in wrong.items():
            is_visible = not alike(result[slot.part], run.truth[name][slot.part])
            if is_visible and alike(got[part], result[part]):
                return text
    return ""


def judge_traffic(run: Run, traffic: "Traffic") -> Iterator[TrafficFinding]:
    """One finding for every array and direction that moves, or should, and for shared memory."""
    arrays = traffic.per_array()
    for direction, bounds in (("read", run.reads), ("written", run.writes)):
        for name, counts in arrays.items():
            measured, per_request, lanes = _moved(counts, direction)
            least, most = bounds.get(name, (0, 0))
            if measured or most:
                cause = _traffic_cause(name, direction, measured, (least, most), per_request, lanes)
                yield TrafficFinding(name, direction, measured, least, most, run.name, cause)
    if run.shared_most is not None:
        measured = WAVEFRONT * traffic.totals.shared_wavefronts
        cause = "" if measured <= run.shared_most else _conflicts(traffic)
        yield TrafficFinding("shared", "moved", measured, 0, run.shared_most, run.name, cause)


def _moved(counts: "ArrayTraffic", direction: str) -> tuple[int, float, int]:
    """Bytes of whole sectors, sectors a request, and bytes that lanes asked for."""
    kinds = ("load", "cp_async") if direction == "read" else ("store", "atomic")
    sectors, requests, lanes = (
        sum(getattr(counts, f"{kind}_{what}") for kind in kinds)
        for what in ("sectors", "requests", "bytes")
    )
    return SECTOR * sectors, sectors / max(1, requests), lanes


def _traffic_cause(
    name: str, direction: str, measured: int, bounds: Bytes, per_request: float, lanes: int
) -> str:
    least, most = bounds
    if least <= measured <= most:
        return ""
    if not most:
        return f"{name} is not {direction} by this kernel at all"
    if measured < least:
        return f"part of {name} is never {direction}: is some of the work left out?"
    if per_request > 5 and measured > 1.5 * lanes:
        return (
            f"{per_request:.0f} sectors a request: the 32 lanes of a warp touch places far apart; "
            "let neighbouring threads take neighbouring elements"
        )
    return f"{name} is {direction} {measured / most:.3g} times as often as allowed"


def _conflicts(traffic: "Traffic") -> str:
    totals = traffic.totals
    times = totals.shared_wavefronts / max(1, totals.shared_requests)
    if times > 1.5:
        return (
            f"{times:.0f} wavefronts a request: lanes want different words of one bank; "
            "words 32 apart share a bank, so make the tile's rows one word longer"
        )
    return "every element goes through shared memory more often than once in and once out"


# ---- Closed forms: bytes of the sectors that warps touch --------------------------------------


def once(rows: int, length: int) -> int:
    """Bytes of sectors at most when `rows` rows of `length` floats, one after the other in memory,
    are moved once by warps of 32 neighbouring floats that start at each row's beginning.

    Rows of whole warps need 4 sectors a request. Ragged ones are not aligned, and a compiler that
    unrolls their loop may split requests near the end: one sector more is allowed for each.
    """
    start = (np.arange(rows) * length)[:, None] + np.arange(0, length, WARP)[None, :]
    end = np.minimum(start + WARP, (np.arange(rows) + 1)[:, None] * length)
    sectors = (end - 1) // FLOATS_PER_SECTOR - start // FLOATS_PER_SECTOR + 1
    return SECTOR * int(sectors.sum() + (sectors.size if length % WARP else 0))


def compulsory(elements: int) -> int:
    """Bytes of the sectors that `elements` floats lie in: each has to move at least once."""
    return SECTOR * -(-elements // FLOATS_PER_SECTOR)
