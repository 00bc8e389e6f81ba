"""The traffic widget in a browser: the machine's bytes at every step, and tiles that fly."""

import pytest

from lessons.widgets.traffic import TrafficView
from tests.lessons.widgets.conftest import run_copy, run_flash1, run_flash2, run_three_kernels

pytestmark = pytest.mark.browser


def bytes_of(text: str) -> int:
    return int(text.replace(",", ""))


def test_every_counter_at_every_step(show):
    widget = TrafficView(run_flash1())
    shown = show(widget)
    for k, state in enumerate(widget.trace):
        shown.go(k)
        got = {name: bytes_of(text) for name, text in shown.numbers.items()}
        expected = {"sram": state["sram_bytes"], "total": state["total"]}
        expected |= {f"read {name}": n for name, n in state["read"].items()}
        expected |= {f"written {name}": n for name, n in state["written"].items()}
        assert got == expected
        verb = "read from" if state["transfers"][0]["kind"] == "load" else "written to"
        assert verb in shown.said
        assert f"{state['total']:,} bytes moved so far" in shown.said


def test_the_words_name_the_tile(show):
    shown = show(TrafficView(run_three_kernels()))
    assert shown.said.startswith("K[0:48] is read from HBM, 768 bytes; ")
    shown.go(2)
    assert shown.said.startswith("S[0:16, 0:16] is written to HBM, 1,024 bytes; ")


def test_live_tiles_lie_in_the_box(show):
    widget = TrafficView(run_flash2())
    shown = show(widget)
    for k, state in enumerate(widget.trace):
        shown.go(k)
        words = shown.page.locator("svg text").all_text_contents()
        for tile in state["live"]:
            assert any(w in (f"{tile['array']} stays", f"{tile['array']} arrives") for w in words)
        assert ("let go" in " ".join(words)) == any(
            t["kind"] == "load" and not t["alive"] for t in state["transfers"]
        )


def test_two_runs_side_by_side(show):
    three, flash = run_three_kernels(), run_flash2()
    widget = TrafficView({"three kernels": three, "FlashAttention-2": flash})
    shown = show(widget)
    shown.press("End")
    totals = shown.page.locator("[data-k=total]").all_text_contents()
    assert [bytes_of(t) for t in totals] == [three.traffic.total, flash.traffic.total]
    assert "FlashAttention-2: finished" in shown.said or len(widget.beside) == len(widget.trace)
    why = shown.page.locator(".say p").nth(1).text_content()
    ratio = three.traffic.total / flash.traffic.total
    assert f"a ratio of {ratio:.2f}" in why
    left, right = (
        shown.page.get_by_text(f"{name} · HBM").bounding_box()
        for name in ("three kernels", "FlashAttention-2")
    )
    assert left["y"] == right["y"] and left["x"] < right["x"]


def test_a_long_run_says_that_it_is_shortened(show):
    widget = TrafficView(run_copy(rows=1001))
    shown = show(widget)
    why = shown.page.locator(".say p").nth(1).text_content()
    assert "each step shows 11 transfers together; no byte is left out" in why
    assert "and 10 more transfers" in shown.said
    shown.press("End")
    assert bytes_of(shown.numbers["total"]) == 2 * 1001 * 8


def test_tiles_fly_to_the_chip_and_are_gone(show):
    shown = show(TrafficView(run_flash1()), motion="no-preference")
    shown.press("ArrowRight")
    assert shown.page.locator(".flyer").count() == 1
    shown.page.wait_for_function("() => document.querySelectorAll('.flyer').length === 0")
    shown.press("End")  # a jump, not a step: nothing flies
    assert shown.page.locator(".flyer").count() == 0


def test_nothing_flies_for_those_who_ask_for_stillness(show):
    shown = show(TrafficView(run_flash1()), motion="reduce")
    shown.press("ArrowRight")
    assert shown.page.locator(".flyer").count() == 0
    assert shown.page.locator("[marker-end]").count() == 1  # the arrow says the same
