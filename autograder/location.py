"""Where a result went wrong: which rows, which tile, which array, and when."""

import numpy as np

from autograder.exactness import Budget, errors
from autograder.fixtures import Fixture
from reference_numpy.machine import Machine
from reference_numpy.oracle import attention
from reference_numpy.tiling import tiles


def locate(name: str, got: np.ndarray, budget: Budget, tile: int) -> str:
    """Which rows are wrong, in which tile the worst one lies, and by how much."""
    if got.shape != budget.truth.shape:
        return f"{name} has shape {got.shape}, it should be {budget.truth.shape}"
    by_row = errors(got, budget.truth).reshape(len(got), -1).max(axis=1)
    bad = np.flatnonzero(by_row > budget.allowed)
    worst = int(bad[np.argmax(by_row[bad])])
    size = "not finite" if np.isinf(by_row[worst]) else f"{by_row[worst]:.1e}"
    return (
        f"{name}: {rows_wrong(bad, len(got))}; worst in row {worst}, "
        f"tile {worst // tile}: error {size}, allowed {budget.allowed:.1e}"
    )


def rows_wrong(bad: np.ndarray, rows: int) -> str:
    """How many of `rows` rows are wrong, and which: the first three runs of `bad`."""
    return f"{len(bad)} of {rows} rows wrong ({ranges(bad)})"


def ranges(rows: np.ndarray) -> str:
    """Ascending row numbers as slices, the first three."""
    runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    shown = [f"{run[0]}:{run[-1] + 1}" for run in runs[:3]]
    return ", ".join(shown) + (", …" if len(runs) > 3 else "")


def never_stored(machine: Machine, array: str, rows: int) -> str:
    """Says which rows of `array` no store ever reached, or ""."""
    missing = np.ones(rows, bool)
    for event in machine.events:
        if event.kind == "store" and event.array == array:
            missing[slice(*event.bounds[0])] = False
    return f"{array}[{ranges(np.flatnonzero(missing))}] is never stored" if missing.any() else ""


def read_too_early(machine: Machine) -> str:
    """Says which reserved array was read before anything was stored there, or ""."""
    stored = {array.name: np.zeros(len(array), bool) for array in machine.reserved}
    for event in machine.events:
        if event.array not in stored:
            continue
        rows = stored[event.array][slice(*event.bounds[0])]
        if event.kind == "store":
            rows[:] = True
        elif event.kind == "load" and not rows.all():
            start, stop = event.bounds[0]
            return f"{event.array}[{start}:{stop}] is read before it is stored: HBM holds NaN there"
    return ""


def weights_off(fx: Fixture, O: np.ndarray) -> str:
    """For V = I, where O is P: the tiles of keys whose weights are wrong, or ""."""
    if not np.array_equal(fx.V, np.eye(len(fx.V), dtype=fx.V.dtype)) or not np.isfinite(O).all():
        return ""
    truth, _ = attention(fx.Q, fx.K, fx.V, causal=fx.causal, scale=fx.scale)
    wrong = errors(O, truth).max(axis=0) > 1e-5
    bad = [j for j, cols in enumerate(tiles(len(fx.K), fx.Bc)) if wrong[cols].any()]
    return f"the weights of key tiles {bad} are off" if bad else ""
