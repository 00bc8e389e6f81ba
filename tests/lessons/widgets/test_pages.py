"""What every widget owes its reader: keys, a quiet start, words, contrast, room to breathe."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

WIDTHS = (640, 1100)

CHECKS = (Path(__file__).parent / "picture_checks.js").read_text(encoding="utf-8")


def some_steps(widget):
    n = max(len(widget.trace), len(getattr(widget, "beside", [])))
    return sorted({*range(0, n, max(1, n // 9)), n - 1})


def test_keys_move_through_the_steps(show, widget):
    shown = show(widget)
    last = shown.page.evaluate("() => Number(document.querySelector('input[type=range]').max)")
    assert shown.step == 0
    walked = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home", "ArrowLeft"):
        shown.press(key)
        walked.append(shown.step)
    assert walked == [1, 2, 1, last, last, 0, 0]
    assert shown.page.locator(".count").text_content().endswith(f"1 / {last + 1}")


def test_buttons_and_slider_move_too(show, widget):
    shown = show(widget)
    unit = "kernel" if "roofline" in type(widget).__name__.lower() else "step"
    shown.button(f"next {unit}").click()
    assert shown.step == 1
    shown.button(f"previous {unit}").click()
    assert shown.step == 0
    shown.page.get_by_role("slider", name=unit).fill("2")
    assert shown.step == 2
    shown.button(f"first {unit}").click()
    assert shown.step == 0


def test_keys_stay_inside_and_are_left_to_inputs(show, widget):
    shown = show(widget)
    shown.page.evaluate(
        "() => { window.heard = [];"
        " document.addEventListener('keydown', (event) => heard.push(event.key)); }"
    )
    shown.press("ArrowRight", "Home", "End", "Home", " ", " ", "d")
    assert shown.page.evaluate("() => heard") == []
    for field in shown.page.locator(".fab input[type=text], .fab select").all():
        shown.press("Home")
        field.press("End")
        field.press("ArrowLeft")
        assert shown.step == 0
    shown.page.locator(".fab input[type=range]").press("ArrowRight")  # the slider's own key
    assert shown.step == 1


def test_space_on_a_button_presses_the_button(show, widget):
    shown = show(widget)
    shown.page.locator(".controls button").nth(3).press(" ")
    assert shown.step == 1
    assert shown.button("play").text_content() == "Play"


def test_nothing_plays_by_itself_and_play_can_be_paused(show, widget):
    shown = show(widget)
    shown.page.clock.install()
    shown.page.clock.run_for(10_000)
    assert shown.step == 0
    shown.press(" ")
    assert shown.button("pause").text_content() == "Pause"
    shown.page.clock.run_for(1_700)
    assert shown.step == 1
    shown.press(" ")
    shown.page.clock.run_for(10_000)
    assert shown.step == 1
    assert shown.button("play").text_content() == "Play"


def test_playing_stops_at_the_end_and_starts_again(show, widget):
    shown = show(widget)
    shown.page.clock.install()
    shown.press("End")
    last = shown.step
    shown.press(" ")
    assert shown.step == 0
    shown.page.clock.run_for(1_600 * (last + 3))
    assert shown.step == last
    assert shown.button("play").is_visible()


def test_playing_is_kept_from_the_kernel_until_it_stops(show, widget):
    shown = show(widget)
    shown.page.clock.install()
    shown.page.evaluate("() => { window.saved = 0; model.save_changes = () => { saved += 1; }; }")
    shown.press(" ")
    shown.page.clock.run_for(3_300)
    assert (shown.step, shown.page.evaluate("() => saved")) == (2, 0)
    shown.press(" ")
    assert shown.page.evaluate("() => saved") == 1


def test_every_step_is_told_in_words(show, picture):
    shown = show(picture)
    assert shown.page.locator(".say").get_attribute("aria-live") == "polite"
    told = set()
    for k in some_steps(picture):
        shown.go(k)
        drawing = shown.page.locator(".fab svg")
        assert drawing.get_attribute("role") == "img"
        assert drawing.get_attribute("aria-label") == shown.said
        told.add(shown.said)
    assert len(told) > 1 and all(any(c.isdigit() for c in words) for words in told)


def test_nothing_moves_for_those_who_ask_for_stillness(show, picture):
    shown = show(picture, motion="reduce")
    for k in some_steps(picture):
        shown.go(max(0, k - 1))
        shown.go(k)
        assert shown.page.evaluate("() => document.getAnimations().length") == 0


def test_the_box_can_be_focused_and_shows_it(show, widget):
    shown = show(widget)
    shown.page.keyboard.press("Tab")
    assert shown.box.evaluate("(box) => box === document.activeElement")
    assert shown.box.evaluate("(box) => getComputedStyle(box).outlineWidth") == "3px"
    assert (shown.box.get_attribute("role"), shown.box.get_attribute("aria-label")) == (
        "group",
        widget.title,
    )


def at_each_step(shown, picture, check: str) -> list:
    """[step, what `check` of picture_checks.js finds there]."""
    return shown.page.evaluate(f"{CHECKS}; atEachStep({some_steps(picture)}, {check})")


def test_no_text_covers_another_and_nothing_sticks_out(show, picture):
    shown = show(picture)
    for width in WIDTHS:
        shown.resize(width)
        found = at_each_step(shown, picture, "() => [...collisions(), fits()]")
        assert (width, found) == (width, [[k, [True]] for k, _ in found])


def test_text_in_the_picture_has_contrast(show, picture):
    shown = show(picture)
    for scheme in ("light", "dark"):
        shown.page.emulate_media(color_scheme=scheme)
        for k, worst in at_each_step(shown, picture, "worstContrast"):
            assert worst["ratio"] >= 4.5, (scheme, k, worst)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(show, widget, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe not installed")
    shown = show(widget, scheme=scheme)
    for k in (0, len(widget.trace) - 1):
        shown.go(k)
        report = axe.Axe().run(shown.page)
        assert report.violations_count == 0, report.generate_report()


def test_two_widgets_on_one_page_do_not_meet(show, widget):
    shown = show(widget)
    shown.page.evaluate(
        """() => {
          const el = document.body.appendChild(document.createElement('div'));
          const get = (name) => (name === 'step' ? 1 : model.get(name));
          front_end.default.render({ model: { ...model, get, on() {}, off() {} }, el });
        }"""
    )
    ids = shown.page.evaluate("() => [...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
    counts = shown.page.locator(".count").all_text_contents()
    assert "1 / " in counts[0] and "2 / " in counts[1]


def test_unmounting_leaves_nothing_behind(show, widget):
    shown = show(widget)
    shown.page.evaluate("() => { unmount(); model.set('step', 1); }")
    assert shown.box.count() == 0
