"""Lesson 02: softmax over tiles, and joining two partial results."""

from collections.abc import Iterator

import numpy as np

from autograder.candidate import Candidate, StudentFault
from autograder.exactness import FORWARD_FACTOR, FORWARD_FLOOR, Budget, errors
from autograder.exercise import Evidence, Exercise, Tier
from autograder.result import Finding, Points

Rows = np.ndarray  # scores (rows, keys)
PAPER_EXAMPLE = [np.array([[1, 3]], np.float32), np.array([[2, 5]], np.float32)]


def _cut(scores: Rows, widths: list[int]) -> list[np.ndarray]:
    return np.split(scores.astype(np.float32), np.cumsum(widths)[:-1], axis=1)


def softmax_fixtures(seed: int) -> dict[str, tuple[str, list[np.ndarray]]]:
    """For each fixture its invariant and its score tiles, each (rows, Bc)."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((8, 96))
    masked = noise.copy()
    masked[:, :32] = -np.inf
    return {
        "normal": ("equals softmax in one go", _cut(noise, [32, 32, 32])),
        "by_hand": ("[1, 3], [2, 5] gives m = 5, l = 1.2034", PAPER_EXAMPLE),
        "rising": (
            "stable when the maximum keeps rising",
            _cut(noise + 3.0 * np.arange(96), [32, 32, 32]),
        ),
        "falling": (
            "a smaller maximum later leaves m alone",
            _cut(noise - 3.0 * np.arange(96), [32, 32, 32]),
        ),
        "deep_negative": (
            "stable when all scores are very negative",
            _cut(0.1 * noise - 300, [32, 32, 32]),
        ),
        "uneven": ("tiles may have any width", _cut(noise, [1, 50, 7, 38])),
        "one_tile": ("a single tile is plain softmax", _cut(noise, [96])),
        "masked_tile": ("a tile that is masked throughout changes nothing", _cut(masked, [32] * 3)),
    }


def _statistics(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m = scores.max(axis=1)
    e = np.where(scores == -np.inf, 0, np.exp(scores - m[:, None]))
    l = e.sum(axis=1)
    return m, l, e / l[:, None]


def _budget(truth: np.ndarray, naive: np.ndarray) -> Budget:
    # m and l are not bounded by 1 as P is, so their floor grows with them.
    size = float(np.max(np.abs(truth[np.isfinite(truth)]), initial=1.0))
    return Budget.of(truth, naive, factor=FORWARD_FACTOR, floor=FORWARD_FLOOR * size)


def examine_online_softmax(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """m, l and the probabilities on every fixture."""
    for name, (invariant, tiles) in softmax_fixtures(seed).items():
        try:
            result = candidate.call([tile.copy() for tile in tiles])
        except StudentFault as fault:
            if fault.fatal:
                raise
            yield Finding(invariant, False, name, detail=str(fault))
            continue
        yield _judge_softmax(name, invariant, tiles, result)


def _judge_softmax(name: str, invariant: str, tiles: list[np.ndarray], result) -> Finding:
    if not isinstance(result, list | tuple) or len(result) != 3:
        return Finding(invariant, False, name, detail="return three things: m, l, p_tiles")
    scores = np.concatenate(tiles, axis=1)
    truth, naive = _statistics(scores.astype(np.float64)), _statistics(scores)
    m, l, p_tiles = result
    widths = [np.shape(p)[-1] if np.ndim(p) == 2 else 0 for p in p_tiles]
    if widths != [tile.shape[1] for tile in tiles]:
        return Finding(invariant, False, name, detail="p_tiles is cut like tiles, one for each")
    got = (np.asarray(m), np.asarray(l), np.concatenate([np.asarray(p) for p in p_tiles], axis=1))
    for what, value, want, reference in zip(("m", "l", "P"), got, truth, naive, strict=True):
        if not _budget(want, reference).accepts(value):
            detail = worst_entry(what, value, want)
            return Finding(invariant, False, name, detail, _softmax_cause(what, tiles, value))
    return Finding(invariant, True, name)


def worst_entry(name: str, got: np.ndarray, want: np.ndarray) -> str:
    """How `got` differs from `want`: in shape, or where it is furthest off."""
    if got.shape != want.shape:
        return f"{name} has shape {got.shape}, it should be {want.shape}"
    at = np.unravel_index(int(np.argmax(errors(got, want))), want.shape)
    place = ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column"), at, strict=False))
    return f"{name} is {got[at]:.7g} in {place}; it should be {want[at]:.7g}"


def _softmax_cause(what: str, tiles: list[np.ndarray], value: np.ndarray) -> str:
    wide = [tile.astype(np.float64) for tile in tiles]
    m = np.concatenate(wide, axis=1).max(axis=1)
    with np.errstate(all="ignore"):
        sums = [np.exp(tile - tile.max(axis=1)[:, None]).sum(axis=1) for tile in wide]
        first = np.exp(np.concatenate(wide, axis=1) - wide[0].max(axis=1)[:, None]).sum(axis=1)
        likely = {
            ("l", "l is not multiplied by e^(m_old − m_new) when the maximum grows"): sum(sums),
            ("l", "m keeps the maximum of the first tile"): first,
            ("m", "m is the maximum of the last tile only"): wide[-1].max(axis=1),
            ("m", "m is the maximum of the first tile only"): wide[0].max(axis=1),
            ("m", "m starts at 0 instead of −∞"): np.maximum(m, 0),
        }
        for (name, cause), wrong in likely.items():
            if name == what and value.shape == wrong.shape and np.allclose(value, wrong, rtol=1e-4):
                return cause
    if np.isfinite(value).all():
        return ""
    if np.isneginf(wide[0]).any():
        return "−∞ − (−∞) is NaN: shifted_exp(s, m) gives 0 there"
    return "exp overflows: is the factor e^(m_old − m_new), and not its inverse?"


def _state(scores: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m = scores.max(axis=1, initial=-np.inf).astype(scores.dtype)
    shift = np.where(m == -np.inf, 0, m)[:, None]
    e = np.where(scores == -np.inf, 0, np.exp(scores - shift)).astype(scores.dtype)
    return m, e.sum(axis=1), e @ values


def merge_fixtures(seed: int) -> dict[str, tuple[str, np.ndarray, np.ndarray]]:
    """For each fixture its invariant, the scores (rows, keys) and the values (keys, d)."""
    rng = np.random.default_rng(seed)
    rows, keys, d = 6, 60, 16
    noise, values = rng.standard_normal((rows, keys)), rng.standard_normal((keys, d))
    masked = noise.copy()
    masked[:, :20] = -np.inf
    return {
        "normal": ("two parts join to the whole", noise, values),
        "rising": (
            "stable when the second maximum is far above",
            noise + 4.0 * np.arange(keys),
            values,
        ),
        "falling": (
            "stable when the first maximum is far above",
            noise - 4.0 * np.arange(keys),
            values,
        ),
        "deep_negative": ("stable when all scores are very negative", 0.1 * noise - 300, values),
        "empty_part": ("a part without keys (−∞, 0, 0) changes nothing", masked, values),
        "late_keys": (
            "keys that come after two empty parts count in full",
            np.where(np.arange(keys) < 2 * keys // 3, -np.inf, 0.1 * noise - 300),
            values,
        ),
        "no_keys": ("two parts without keys give (−∞, 0, 0)", np.full_like(noise, -np.inf), values),
    }


def examine_merge(candidate: Candidate, tier: Tier, seed: int) -> Iterator[Evidence]:
    """Joining two parts in either order, and three parts in either grouping."""
    for name, (invariant, scores, values) in merge_fixtures(seed).items():
        yield _try_merge(candidate, name, invariant, scores, values)


def _try_merge(candidate: Candidate, name: str, invariant: str, scores, values) -> Finding:
    scores, values = scores.astype(np.float32), values.astype(np.float32)
    a, b, c = (_state(scores[:, part], values[part]) for part in _thirds(scores.shape[1]))
    try:
        ways = {
            "merge(merge(a, b), c)": candidate.call(candidate.call(a, b), c),
            "merge(a, merge(b, c))": candidate.call(a, candidate.call(b, c)),
            "merge(c, merge(b, a))": candidate.call(c, candidate.call(b, a)),
        }
    except StudentFault as fault:
        if fault.fatal:
            raise
        return Finding(invariant, False, name, detail=str(fault))
    truth = _state(scores.astype(np.float64), values.astype(np.float64))
    naive = _state(scores, values)
    for way, state in ways.items():
        detail = _wrong_part(state, truth, naive)
        if detail:
            return Finding(invariant, False, name, f"{way}: {detail}", _merge_cause(state, truth))
    return Finding(invariant, True, name)


def _thirds(n: int) -> tuple[slice, slice, slice]:
    return slice(0, n // 3), slice(n // 3, 2 * n // 3), slice(2 * n // 3, n)


def _wrong_part(state, truth, naive) -> str:
    if not isinstance(state, list | tuple) or len(state) != 3:
        return "return a state (m, l, o)"
    for what, got, want, reference in zip("mlo", state, truth, naive, strict=True):
        if not _budget(want, reference).accepts(np.asarray(got)):
            return worst_entry(what, np.asarray(got), want)
    return ""


def _merge_cause(state, truth) -> str:
    if not isinstance(state, list | tuple) or len(state) != 3:
        return ""
    l, o = np.asarray(state[1]), np.asarray(state[2])
    if not np.isfinite(l).all() or not np.isfinite(o).all():
        if np.isneginf(truth[0]).any():
            return "−∞ − (−∞) is NaN: shifted_exp(m_a, m) gives 0 there"
        return "exp overflows: both parts move to the larger maximum, by e^(m_part − m)"
    if o.shape == truth[2].shape and np.allclose(o * truth[1][:, None], truth[2], rtol=1e-3):
        return "o is divided by l: a state keeps the undivided sum"
    return ""


EXERCISES = [
    Exercise(
        id="online_softmax",
        lesson=2,
        title="Softmax over tiles",
        signature="(tiles) -> (m, l, p_tiles)",
        answer="reference_numpy.online_softmax:online_softmax",
        examine=examine_online_softmax,
        points=Points(exactness=6, traffic=0),
        hints=(
            "Start with m = −∞ and l = 0: a row that has seen nothing.",
            "For each tile: m_new = max(m, the tile's maximum). Every term so far was e^(s − m).",
            "e^(s − m_new) = e^(s − m) · e^(m − m_new): one factor puts the whole old sum right.",
            "After the last tile m and l are final: go over the tiles again for p = e^(s − m) / l.",
        ),
    ),
    Exercise(
        id="merge",
        lesson=2,
        title="Join two partial results",
        signature="((m, l, o), (m, l, o)) -> (m, l, o)",
        answer="reference_numpy.online_softmax:merge",
        examine=examine_merge,
        points=Points(exactness=6, traffic=0),
        hints=(
            "Neither part is special: both move to m = max(m_a, m_b).",
            "l and o of a part shrink by the same factor e^(m_part − m).",
            "shifted_exp(m_a, m) is that factor, and 0 for a part that saw no key.",
        ),
    ),
]
