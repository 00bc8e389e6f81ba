"""The tile-rescaling widget in a browser: its numbers, its scores, its two forms."""

import json
import math

import numpy as np
import pytest

from lessons.widgets.stepper import from_wire, to_wire
from lessons.widgets.tile_rescaling import PRESETS, TileRescaling, as_tiles, tile_rescaling_trace

pytestmark = pytest.mark.browser


def number(text: str) -> float:
    """A number as the picture writes it, read back."""
    return float(text.replace("−", "-").replace("∞", "inf"))


def written(x: float) -> float:
    """A number as the picture writes it: four decimals, or three figures if it is far from 1."""
    if not np.isfinite(x) or (x == int(x) and abs(x) < 1e6):
        return x
    return float(f"{x:.4f}") if 5e-5 <= abs(x) < 1e5 else float(f"{x:.2e}")


def check_numbers(shown, state, local=False):
    """Every number that step shows, against the Python state."""
    got = shown.numbers
    phase = state["phase"]
    assert number(got["m_old"]) == written(state["m_old"])
    assert number(got["m"]) == written(state["m"])
    assert number(got["l_old"]) == written(state["l_old"])
    if state["factor"] is None:
        assert got["factor"] == "–"
    else:
        assert number(got["factor"]) == written(state["factor"])
        assert ("l_rescaled" in got) == (phase != "read")
    if "l_rescaled" in got:
        assert number(got["l_rescaled"]) == written(state["l_rescaled"])
    added = phase in ("add", "divide") or (local and phase == "rescale")
    assert ("l" in got) == added
    if added:
        assert number(got["l"]) == written(state["l"])
    done = phase in ("add", "divide")
    O = {"read": "O_old", "rescale": "O_rescaled", "add": "O", "divide": "O"}[phase]
    for c, truth in enumerate(state["truth"]):
        assert number(got[f"truth{c}"]) == written(truth)
        assert number(got[f"out{c}"]) == written(state["out" if done else "out_old"][c])
        if not local:
            assert number(got[f"O{c}"]) == written(state[O][c])
        elif phase == "rescale":
            assert number(got[f"local{c}"]) == written(state["kept"] * state["out_old"][c])
        else:
            assert number(got[f"local{c}"]) == written(state["out" if done else "out_old"][c])
    for j, weight in enumerate(state["weights"]):
        assert (
            got[f"weight{j}"] == "·"
            if weight is None
            else number(got[f"weight{j}"]) == written(weight)
        )


@pytest.mark.parametrize("local", [False, True])
def test_presets_bring_their_scores_and_every_number_of_every_step(show, local):
    shown = show(TileRescaling([[8.0]], local=local))
    for preset in PRESETS:
        shown.page.get_by_label("Preset").select_option(label=preset["name"])
        assert from_wire(shown.page.evaluate("() => model.get('scores')")) == preset["scores"]
        assert shown.page.locator(".note").text_content() == preset["note"]
        for k, state in enumerate(tile_rescaling_trace(preset["scores"])):
            shown.go(k)
            check_numbers(shown, state, local)


def test_the_figures_of_the_lesson_on_screen(show):
    shown = show(TileRescaling())
    assert shown.numbers["factor"] == "–"
    shown.press("ArrowRight")
    assert shown.numbers["l"] == "1.1353"
    shown.press("ArrowRight", "ArrowRight", "ArrowRight")
    numbers = shown.numbers
    assert (numbers["factor"], numbers["l_rescaled"], numbers["l"]) == (
        "0.1353",
        "0.1537",
        "1.2034",
    )
    assert shown.said.startswith("Tile 2 of 2, add: 0.1537 plus 0.0498 plus 1 gives l = 1.2034.")
    shown.press("End")
    assert "0.0183 + 0.1353 + 0.0498 + 1 = 1.2034" in shown.said
    assert shown.numbers["one_go"] == "1.2034"


def test_a_v_of_ones_own(show):
    widget = TileRescaling([1, 3, 2, 5, 0], [[1, -2], [0.5, 3], [-1, 4], [2, 2], [9, 9]], tile=3)
    shown = show(widget)
    for k, state in enumerate(widget.trace):
        shown.go(k)
        check_numbers(shown, state)


# Each case's trace by the browser's own algorithm, with ±∞ and NaN as text.
BROWSER_TRACES = """(cases) => JSON.stringify(
  cases.map(([tiles, V]) => front_end.tileRescalingTrace(fromText(tiles), V)),
  (_, x) => x === -Infinity ? "-inf" : Number.isNaN(x) ? "nan" : x)"""
FROM_TEXT = """window.fromText = (x) =>
  Array.isArray(x) ? x.map(fromText) : x === "-inf" ? -Infinity : x"""


def random_case(rng):
    n, tile, d = rng.integers(1, 25), int(rng.integers(2, 9)), int(rng.integers(1, 4))
    s = rng.normal(size=n) * rng.choice([1, 40, 400])
    s[rng.random(n) < 0.2] = -np.inf
    return as_tiles(list(s), tile), rng.normal(size=(n, d)).tolist() if rng.random() < 0.5 else []


def test_the_browsers_trace_is_pythons_trace(show):
    shown = show(TileRescaling())
    shown.page.evaluate(FROM_TEXT)
    rng = np.random.default_rng(7)
    cases = [random_case(rng) for _ in range(60)]
    traces = from_wire(json.loads(shown.page.evaluate(BROWSER_TRACES, to_wire(cases))))
    for (tiles, V), got in zip(cases, traces, strict=True):
        expected = tile_rescaling_trace(tiles, V)
        assert [state["phase"] for state in got] == [state["phase"] for state in expected]
        for ours, theirs in zip(expected, got, strict=True):
            assert ours.keys() == theirs.keys()
            assert all(close(ours[key], theirs[key]) for key in ours.keys() - {"phase"})


def close(ours, theirs) -> bool:
    """Equal up to the last places of exp, which Python and the browser may round differently."""
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    if ours is None or theirs is None:
        return ours is theirs
    return math.isclose(ours, theirs, rel_tol=1e-13, abs_tol=1e-15)


def scores_field(shown):
    return shown.page.get_by_role("textbox", name="Scores")


def type_scores(shown, text):
    scores_field(shown).fill(text)
    shown.button("Use").click()


def test_scores_are_edited_without_a_kernel(show):
    shown = show(TileRescaling())
    shown.press("End")
    type_scores(shown, "4 | -1.5, 2; −inf | 6e0")
    tiles = [[4.0], [-1.5, 2.0, -np.inf], [6.0]]
    assert shown.step == 0
    assert from_wire(shown.page.evaluate("() => model.get('scores')")) == tiles
    for k, state in enumerate(tile_rescaling_trace(tiles)):
        shown.go(k)
        check_numbers(shown, state)
    assert shown.page.get_by_label("Preset").input_value() == ""


def test_enter_uses_the_scores_too(show):
    shown = show(TileRescaling())
    field = scores_field(shown)
    field.fill("9 | 1")
    field.press("Enter")
    assert shown.page.evaluate("() => model.get('scores')") == [[9], [1]]


MISTYPED = {
    "1, x | 2": "Tile 1: “x” is not a number.",
    "1 | 2, inf": "Tile 2: “inf” is not a number.",
    "1 | 2, nan": "Tile 2: “nan” is not a number.",
    "1 | | 2": "Tile 2 is empty",
    "": "Tile 1 is empty",
    " ".join("1" * 17): "A tile of 17 scores: the picture holds at most 16",
    "|".join("1" * 13): "13 tiles: the picture holds at most 12",
    "|".join(["1 1 1 1 1 1 1"] * 5): "35 scores: the picture holds at most 32",
}


def test_a_mistyped_score_is_explained_and_changes_nothing(show):
    shown = show(TileRescaling())
    alert = shown.page.get_by_role("alert")
    for text, message in MISTYPED.items():
        type_scores(shown, text)
        assert alert.text_content().startswith(message)
        assert scores_field(shown).get_attribute("aria-invalid") == "true"
        assert shown.page.evaluate("() => model.get('scores')") == [[1, 3], [2, 5]]
    type_scores(shown, "1, 3 | 2, 5")  # the scores that were there all along
    assert alert.text_content() == ""
    assert scores_field(shown).get_attribute("aria-invalid") == "false"


def test_v_gives_way_to_the_identity_when_it_no_longer_fits(show):
    shown = show(TileRescaling([1, 2], [10, 20]))
    type_scores(shown, "3 | 4")
    assert shown.page.evaluate("() => model.get('values')") == [[10], [20]]
    type_scores(shown, "1, 2 | 3")
    assert shown.page.evaluate("() => model.get('values')") == []
    assert (
        "V had 2 rows, these are 3 scores: showing V = I"
        in shown.page.locator(".note").text_content()
    )
    shown.press("End")
    check_numbers(shown, tile_rescaling_trace([[1, 2], [3]])[-1])


def test_the_switch_shows_the_two_block_form(show):
    shown = show(TileRescaling())
    shown.press("ArrowRight", "ArrowRight", "ArrowRight")
    assert "kept" not in shown.numbers
    shown.page.get_by_label("divide at every tile").check()
    assert shown.page.evaluate("() => model.get('local')") is True
    assert shown.numbers["kept"] == "0.1277"  # 0.1537 / 1.2034
    why = shown.page.locator(".say p").nth(1).text_content()
    assert "O = (l₁ / l₂) · O₁ + A₂ V₂ / l₂" in why


def test_scores_from_python_reach_the_picture(show):
    widget = TileRescaling()
    shown = show(widget)
    widget.scores = [[0], [1]]
    shown.page.evaluate(
        "([trace, scores]) => { model.set('trace', trace); model.set('scores', scores); }",
        [to_wire(widget.trace), to_wire(widget.scores)],
    )
    assert scores_field(shown).input_value() == "0 | 1"
    shown.press("End")
    check_numbers(shown, widget.trace[-1])


def test_the_old_sum_shrinks_before_the_readers_eyes(show):
    shown = show(TileRescaling(), motion="no-preference")
    shown.go(2)
    assert shown.page.evaluate("() => document.getAnimations().length") == 0
    shown.go(3)
    assert shown.page.evaluate("() => document.getAnimations().length") == 5  # l and four bars
    shown.go(1)
    assert shown.page.evaluate("() => document.getAnimations().length") == 0


def test_the_table_stays_open_while_stepping(show):
    shown = show(TileRescaling())
    shown.page.get_by_text("Numbers as a table").click()
    shown.press("End")
    row = shown.page.locator("tbody tr").nth(3)
    assert row.is_visible()
    assert row.locator("td").all_text_contents() == ["0", "0", "1", "0.8310", "0.8310"]
