"""The online softmax, tile by tile: what happens to the old sum when a larger score turns up.

    from lessons.widgets.tile_rescaling import TileRescaling
    TileRescaling([[1, 3], [2, 5]])

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); the update
of O is line 12 of Algorithm 1 in FlashAttention (2022), and FlashAttention-2 (2023, section 3.1)
leaves its division to the end.
"""

import math

import traitlets as t

from lessons.widgets.stepper import WIRE, SteppedWidget, decimal, front_end

INF = math.inf
MAX_TILES, MAX_TILE, MAX_SCORES, MAX_COLUMNS = 12, 16, 32, 32  # what the picture can hold

PRESETS = [
    {
        "name": "the lesson's two blocks",
        "scores": [[1.0, 3.0], [2.0, 5.0]],
        "note": "Small enough to check with a pocket calculator.",
    },
    {
        "name": "rising",
        "scores": [[0.0, 30.0], [60.0, 90.0], [120.0, 150.0]],
        "note": "Every tile brings a new max. A max frozen at the first tile's 30 would ask "
        "for e^120, which overflows fp32.",
    },
    {
        "name": "deep negative",
        "scores": [[-300.0, -301.0], [-299.5, -302.0], [-300.5, -300.0]],
        "note": "m must start at −∞. Started at 0, every e^(−300) is 0 in fp32 and O / l is 0 / 0.",
    },
    {
        "name": "all equal",
        "scores": [[2.0, 2.0], [2.0, 2.0]],
        "note": "m never grows, so the factor is e^0 = 1 and l just counts the keys.",
    },
    {
        "name": "one huge score",
        "scores": [[0.0, 1.0], [50.0, 2.0], [1.0, 0.0]],
        "note": "The old sum all but vanishes, and rightly so: softmax puts all the weight there.",
    },
    {
        "name": "fully masked tiles",
        "scores": [[-INF, -INF], [1.0, 3.0], [-INF, -INF], [2.0, 5.0]],
        "note": "A masked score is −∞ and its term is 0. −∞ − (−∞) would be NaN: "
        "while m is −∞ there is nothing to rescale.",
    },
]


def as_tiles(scores, tile: int = 2) -> list[list[float]]:
    """Scores as a list of tiles: nested scores stay as they are, a flat row is cut every `tile`.

    Raises ValueError, in one line, for an empty tile, NaN, +∞ or more than the picture holds.
    """
    rows = [list(row) if hasattr(row, "__iter__") else row for row in scores]
    if rows and not any(isinstance(row, list) for row in rows):
        if tile < 1:
            raise ValueError(f"tile = {tile}: a tile holds at least one score")
        rows = [rows[i : i + tile] for i in range(0, len(rows), tile)]
    if not rows or not all(isinstance(row, list) and row for row in rows):
        raise ValueError("scores: give one row, [1, 3, 2], or tiles, [[1, 3], [2]]; none empty")
    tiles = [[float(s) for s in row] for row in rows]
    _check_drawable(tiles)
    return tiles


def _check_drawable(tiles: list[list[float]]) -> None:
    for index, row in enumerate(tiles, 1):
        if any(math.isnan(s) or s == INF for s in row):
            raise ValueError(f"tile {index} holds {row}: scores are finite, or -inf for masked")
    if len(tiles) > MAX_TILES or max(map(len, tiles)) > MAX_TILE or _count(tiles) > MAX_SCORES:
        raise ValueError(
            f"{_count(tiles)} scores in {len(tiles)} tiles: the picture holds at most {MAX_SCORES} "
            f"scores, {MAX_TILES} tiles of up to {MAX_TILE}. Show one row of a smaller example."
        )


def as_values(values, n: int) -> list[list[float]]:
    """V as n rows of floats; `None` or empty is the identity, which makes O the weights P.

    Raises ValueError if V has not n rows of one length.
    """
    if values is None or len(values) == 0:
        return [[float(i == j) for j in range(n)] for i in range(n)]
    rows = [[float(v) for v in row] if hasattr(row, "__iter__") else [float(row)] for row in values]
    if len(rows) != n:
        raise ValueError(f"values has {len(rows)} rows for {n} scores: give one row of V a score")
    if len({len(row) for row in rows}) != 1 or not 1 <= len(rows[0]) <= MAX_COLUMNS:
        raise ValueError(f"values: rows of V have one length, between 1 and {MAX_COLUMNS}")
    if not all(math.isfinite(v) for row in rows for v in row):
        raise ValueError("values: V is finite")
    return rows


def tile_rescaling_trace(scores, values=None, tile: int = 2) -> list[dict]:
    """Every step of the online softmax over one row of scores.

    Args:
        scores: tiles of scores, or one row that is cut every `tile` scores; -inf is masked.
        values: V, one row (or one number) a score; None is the identity.
        tile: scores in a tile, for a flat row.

    Returns:
        For each tile the phases "read", "rescale" (if anything was seen before) and "add", and at
        the end "divide". A state holds the tile's whole update: m_old, m, factor = e^(m_old − m)
        (None with nothing to rescale), l_old, l_rescaled, terms, l, O_old, O_rescaled, O; the form
        that divides at every tile: kept = l_rescaled / l, out_old, out = O / l; `weights`, the
        term e^(s − m) of each key as it stands at this phase (None if not yet added); and
        `truth`, the softmax output computed in one go.
    """
    tiles = as_tiles(scores, tile)
    V = as_values(values, _count(tiles))
    truth = softmax_in_one_go(tiles, V)
    m, l, O, seen, trace = -INF, 0.0, [0.0] * len(V[0]), [], []
    for index, s in enumerate(tiles):
        start = len(seen)
        update = _update(m, l, O, s, V[start : start + len(s)])
        unread = [None] * (len(V) - start)
        trace.append(_state(index, "read", update, _terms(seen, m) + unread, truth))
        m, l, O = update["m"], update["l"], update["O"]
        if update["factor"] is not None:
            trace.append(_state(index, "rescale", update, _terms(seen, m) + unread, truth))
        seen = seen + s
        weights = _terms(seen, m) + [None] * (len(V) - len(seen))
        trace.append(_state(index, "add", update, weights, truth))
    trace.append({**trace[-1], "phase": "divide"})
    return trace


def softmax_in_one_go(tiles: list[list[float]], V: list[list[float]]) -> list[float]:
    """softmax(s) V with the max of the whole row known beforehand; 0 for a row all masked."""
    s = [x for row in tiles for x in row]
    terms = _terms(s, max(s))
    return _divide(_weighted(terms, V), sum(terms))


def _update(m_old: float, l_old: float, O_old: list, s: list, V: list) -> dict:
    m = max(m_old, *s)
    factor = math.exp(m_old - m) if m_old > -INF else None
    scale = 1.0 if factor is None else factor  # nothing seen: l and O are 0 already
    terms = _terms(s, m)
    l_rescaled, O_rescaled = l_old * scale, [o * scale for o in O_old]
    l = l_rescaled + sum(terms)
    O = [o + new for o, new in zip(O_rescaled, _weighted(terms, V), strict=True)]
    return {
        "m_old": m_old, "m": m, "factor": factor,
        "l_old": l_old, "l_rescaled": l_rescaled, "terms": terms, "l": l,
        "O_old": O_old, "O_rescaled": O_rescaled, "O": O,
        "kept": l_rescaled / l if l else 0.0,
        "out_old": _divide(O_old, l_old), "out": _divide(O, l),
    }  # fmt: skip


def _state(tile: int, phase: str, update: dict, weights: list, truth: list) -> dict:
    return {"tile": tile, "phase": phase, **update, "weights": weights, "truth": truth}


def _terms(s: list[float], m: float) -> list[float]:
    # While m is −∞ every score is −∞ too; −∞ − (−∞) would be NaN, the term is 0.
    return [math.exp(x - m) if m > -INF else 0.0 for x in s]


def _weighted(terms: list[float], V: list[list[float]]) -> list[float]:
    return [
        sum(p * v for p, v in zip(terms, column, strict=True)) for column in zip(*V, strict=True)
    ]


def _divide(O: list[float], l: float) -> list[float]:
    return [o / l if l else 0.0 for o in O]


def _count(tiles: list[list[float]]) -> int:
    return sum(map(len, tiles))


class TileRescaling(SteppedWidget):
    """Step through the tiles of one row of scores; scores can be edited, in Python and on screen.

    Args:
        scores: tiles, [[1, 3], [2, 5]], or one row; at most 32 scores.
        values: V, one row (or number) a score; None shows V = I, where O is P itself.
        tile: scores in a tile, for a flat row.

    Raises:
        ValueError: scores or values cannot be drawn; the message says which and why.
    """

    _esm = front_end("tile_rescaling_trace.js", "tile_rescaling_words.js", "tile_rescaling.js")
    title = t.Unicode("Tile rescaling: the online softmax, step by step").tag(sync=True)
    scores = t.List().tag(**WIRE)
    values = t.List().tag(sync=True)
    tile = t.Int(2).tag(sync=True)
    local = t.Bool(False, help="divide by l at every tile, as FlashAttention-1 does").tag(sync=True)
    presets = t.List(PRESETS).tag(**WIRE)
    limits = t.Dict(
        {"tiles": MAX_TILES, "tile": MAX_TILE, "scores": MAX_SCORES}, help="of the picture"
    ).tag(sync=True)

    def __init__(self, scores=((1, 3), (2, 5)), values=None, tile: int = 2, **traits):
        tiles = as_tiles(scores, tile)
        V = [] if values is None else as_values(values, _count(tiles))
        trace = tile_rescaling_trace(tiles, V)
        super().__init__(scores=tiles, values=V, tile=tile, trace=trace, **traits)

    @t.validate("scores")
    def _cut(self, proposal) -> list[list[float]]:
        return as_tiles(proposal["value"], self.tile)

    @t.observe("scores", "values")
    def _recompute(self, _change) -> None:
        self.trace = tile_rescaling_trace(self.scores, self.values)
        self.step = min(self.step, len(self.trace) - 1)

    def describe(self) -> str:
        """Each tile's update in figures, and the output beside the softmax in one go."""
        last = self.trace[-1]
        lines = [f"Tile rescaling of {' '.join(_listed(row) for row in self.scores)}"]
        lines += [_in_words(state) for state in self.trace if state["phase"] == "add"]
        lines.append(f"O / l           = {_listed(last['out'])}")
        lines.append(f"softmax, 1 go   = {_listed(last['truth'])}")
        return "\n".join(lines)


def _listed(numbers: list[float]) -> str:
    return "[" + ", ".join(map(decimal, numbers)) + "]"


def _in_words(state: dict) -> str:
    factor = "–" if state["factor"] is None else decimal(state["factor"])
    terms = " + ".join(map(decimal, state["terms"]))
    return (
        f"tile {state['tile'] + 1}: m {decimal(state['m_old'])} -> {decimal(state['m'])}, "
        f"factor {factor}, old sum {decimal(state['l_old'])} -> {decimal(state['l_rescaled'])}, "
        f"+ {terms} gives l = {decimal(state['l'])}"
    )
