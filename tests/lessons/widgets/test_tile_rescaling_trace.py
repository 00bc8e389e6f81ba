"""The trace behind the tile-rescaling picture, against NumPy and the lesson's own figures."""

import json

import numpy as np
import pytest

from lessons.widgets.tile_rescaling import PRESETS, TileRescaling, tile_rescaling_trace


def flat(tiles):
    return np.array([s for row in tiles for s in row])


def softmax(s):
    with np.errstate(invalid="ignore"):
        p = np.exp(s - s.max())
    return np.nan_to_num(p) / max(np.nan_to_num(p).sum(), 1e-300)


def phases(trace):
    return [(state["tile"], state["phase"]) for state in trace]


def test_the_lessons_two_blocks():
    trace = tile_rescaling_trace([[1, 3], [2, 5]])
    assert phases(trace) == [
        (0, "read"), (0, "add"), (1, "read"), (1, "rescale"), (1, "add"), (1, "divide"),
    ]  # fmt: skip
    first, second = trace[1], trace[4]
    assert (first["m_old"], first["m"], first["factor"]) == (-np.inf, 3, None)
    assert round(first["l"], 4) == 1.1353
    assert round(second["factor"], 4) == 0.1353
    assert round(second["l_rescaled"], 4) == 0.1537
    assert [round(term, 4) for term in second["terms"]] == [0.0498, 1]
    assert round(second["l"], 4) == 1.2034
    assert [round(w, 4) for w in trace[-1]["weights"]] == [0.0183, 0.1353, 0.0498, 1]
    assert sum(trace[-1]["weights"]) == pytest.approx(second["l"], rel=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_every_state_against_numpy(seed):
    rng = np.random.default_rng(seed)
    n, tile, d = rng.integers(1, 25), int(rng.integers(2, 9)), int(rng.integers(1, 5))
    s, V = rng.normal(size=n) * rng.choice([1, 30]), rng.normal(size=(n, d))
    s[rng.random(n) < 0.2] = -np.inf
    m_old = -np.inf
    for state in tile_rescaling_trace(list(s), V, tile=tile):
        end = min(n, (state["tile"] + 1) * tile)
        start = state["tile"] * tile
        m = s[:end].max()
        p = np.exp(s[:end] - m) if m > -np.inf else np.zeros(end)
        if state["phase"] == "read":
            m_old = s[:start].max(initial=-np.inf)
        assert (state["m_old"], state["m"]) == (m_old, m)
        np.testing.assert_allclose(state["l"], p.sum(), rtol=1e-13)
        np.testing.assert_allclose(state["l_rescaled"], p[:start].sum(), rtol=1e-13, atol=1e-300)
        np.testing.assert_allclose(state["terms"], p[start:], rtol=1e-13)
        np.testing.assert_allclose(state["O"], p @ V[:end], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            state["O_rescaled"], p[:start] @ V[:start], rtol=1e-12, atol=1e-13
        )
        np.testing.assert_allclose(state["truth"], softmax(s) @ V, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(state["out"], state["truth"], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset["name"])
def test_dividing_at_every_tile_gives_the_same(preset):
    n = len(flat(preset["scores"]))
    V = np.random.default_rng(1).normal(size=(n, 3))
    start = 0
    for state in tile_rescaling_trace(preset["scores"], V):
        if state["phase"] != "add":
            continue
        new = np.array(state["terms"]) @ V[start : start + len(state["terms"])]
        start += len(state["terms"])
        divided = state["kept"] * np.array(state["out_old"]) + new / (state["l"] or 1)
        np.testing.assert_allclose(divided, state["out"], rtol=1e-12, atol=1e-15)


def test_weights_are_the_terms_as_they_stand():
    weights = [state["weights"] for state in tile_rescaling_trace([[1, 3], [2, 5]])]
    e = np.exp
    assert weights[0] == [None] * 4
    np.testing.assert_allclose(weights[1][:2], [e(-2), 1])
    np.testing.assert_allclose(weights[2][:2], [e(-2), 1])  # read: still over the old max
    np.testing.assert_allclose(weights[3][:2], [e(-4), e(-2)])  # rescaled
    assert weights[3][2:] == [None, None]
    np.testing.assert_allclose(weights[4], e(np.array([1, 3, 2, 5]) - 5.0))


def test_a_masked_tile_changes_nothing_and_makes_no_nan():
    trace = tile_rescaling_trace([[-np.inf, -np.inf], [1, 3], [-np.inf, -np.inf], [2, 5]])
    plain = tile_rescaling_trace([[1, 3], [2, 5]])
    assert trace[1]["m"] == -np.inf and trace[1]["l"] == 0 and trace[1]["factor"] is None
    assert trace[-1]["l"] == plain[-1]["l"]
    assert [o for o in trace[-1]["out"] if o] == plain[-1]["out"]
    assert "NaN" not in json.dumps(trace)


def test_a_row_all_masked_is_zero():
    last = tile_rescaling_trace([[-np.inf], [-np.inf]])[-1]
    assert (last["l"], last["out"], last["truth"]) == (0, [0, 0], [0, 0])


def test_rising_scores_need_the_max_to_move():
    rising = next(p for p in PRESETS if p["name"] == "rising")["scores"]
    with np.errstate(over="ignore"):
        frozen = np.exp(np.float32(flat(rising) - max(rising[0])))
    assert np.isinf(frozen).any()
    assert all(np.isfinite(state["l"]) for state in tile_rescaling_trace(rising))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "scores: give one row"),
        (([[1], []],), "none empty"),
        (([[1, 2], [float("nan")]],), "tile 2 holds"),
        (([[1, float("inf")]],), "tile 1 holds"),
        ((list(range(40)),), "40 scores in 20 tiles"),
        (([1, 2], [1, 2, 3]), "values has 3 rows for 2 scores"),
        (([1, 2], [[1], [1, 2]]), "one length"),
        (([1, 2], [1, float("inf")]), "V is finite"),
        (([1, 2], None, 0), "tile = 0"),
    ],
)
def test_bad_input_gets_one_clear_line(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        TileRescaling(*arguments)
    assert "\n" not in str(caught.value)


def test_new_scores_from_python_make_a_new_trace():
    widget = TileRescaling()
    widget.step = 5
    widget.scores = [7, 1, 2]  # a flat row is cut by the widget's tile size
    assert widget.scores == [[7, 1], [2]]
    assert widget.trace == tile_rescaling_trace([[7, 1], [2]])
    assert widget.step == 5
    widget.scores = [7]
    assert widget.step == len(widget.trace) - 1


def test_step_stays_inside_the_trace():
    widget = TileRescaling()
    widget.step = 99
    assert widget.step == 5
    widget.step = -3
    assert widget.step == 0


def test_minus_infinity_crosses_the_wire():
    widget = TileRescaling([[-np.inf, 1]])
    state = json.loads(json.dumps(widget.get_state(), allow_nan=False))
    assert state["scores"] == [["-inf", 1.0]]
    other = TileRescaling()
    other.set_state({"scores": state["scores"]})
    assert other.scores == [[-np.inf, 1.0]]
    assert other.trace == widget.trace


def test_the_text_for_places_without_a_front_end():
    text = TileRescaling()._repr_mimebundle_()[0]["text/plain"]
    assert "tile 1: m −∞ -> 3, factor –, old sum 0 -> 0, + 0.1353 + 1 gives l = 1.1353" in text
    assert "factor 0.1353, old sum 1.1353 -> 0.1537, + 0.0498 + 1 gives l = 1.2034" in text
    assert text.count("[0.0152, 0.1125, 0.0414, 0.8310]") == 2
