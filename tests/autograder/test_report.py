import io
import re
from html.parser import HTMLParser

import pytest

from autograder.report import Report, invariants, print_lines, report_lines, traffic_shown
from autograder.report_html import BADGES
from autograder.result import Finding, Outcome, Points, Result, TrafficFinding

EVIL = "<script>alert(1)</script> & \"quotes\" 'too'"


def result(outcome=Outcome.FAIL, **changes):
    findings = [
        Finding("equals the oracle", True, "normal", error=1e-7, allowed=1e-6),
        Finding("equals the oracle", True, "ragged", error=4e-7, allowed=1e-6),
        Finding(
            "stable when the maximum rises",
            False,
            "rising",
            "O: 32 of 64 rows wrong (32:64)\nworst in row 40, tile 1",
            "the old sum is not rescaled",
            0.25,
            1e-6,
        ),
    ]
    traffic = [
        TrafficFinding("Q", "read", 4096, 4096, 4096, "normal"),
        TrafficFinding("K", "read", 12288, 4096, 8192, "rising", "a load inside the inner loop"),
        TrafficFinding("O", "written", 4096, 4096, 4096, "rising"),
    ]
    parts = {"findings": findings, "traffic": traffic, "earned": Points(3, 0), "seconds": 0.5}
    return Result("flash1_forward", outcome, **(parts | changes))


def passing():
    return result(
        Outcome.PASS,
        findings=[Finding("equals the oracle", True, "normal", error=1e-7, allowed=1e-6)],
        traffic=[TrafficFinding("Q", "read", 4096, 4096, 4096, "normal")],
        earned=Points(6, 4),
    )


@pytest.mark.parametrize("outcome", Outcome)
def test_the_first_word_is_the_verdict(outcome):
    text = repr(Report(result(outcome)))
    assert text.startswith(f"{outcome}  flash1_forward · ")


def test_a_failure_says_what_where_how_much_and_why():
    text = repr(Report(result()))
    assert "✓ held   equals the oracle  (error 4e-07, allowed 1e-06)" in text  # the worst of both
    assert "✗ broken stable when the maximum rises" in text
    assert "rising · O: 32 of 64 rows wrong (32:64) · error 0.25, allowed 1e-06" in text
    assert "worst in row 40, tile 1" in text
    assert "likely cause: the old sum is not rescaled" in text


def test_the_traffic_table_shows_the_first_fixture_that_is_wrong():
    text = repr(Report(result()))
    assert "HBM traffic in bytes (fixture rising; 1 of 2 fixtures right; counts once" in text
    assert re.search(r"✗ broken K +read +12,288 +4,096 +8,192", text)
    assert re.search(r"✓ held +O +written +4,096 +4,096 +4,096", text)
    assert "likely cause: a load inside the inner loop" in text
    assert "Q" not in text.split("HBM traffic")[1]


def test_a_pass_shows_the_first_fixtures_traffic():
    rows, right, tried = traffic_shown(passing().traffic)
    assert (len(rows), right, tried) == (1, 1, 1)
    assert "likely cause" not in repr(Report(passing()))


def test_an_unwritten_exercise_says_what_to_do():
    text = repr(Report(Result("merge", Outcome.NOT_WRITTEN)))
    assert text.startswith("NOT WRITTEN")
    assert 'hint("merge")' in text


def test_a_stop_shows_its_message_whole():
    text = repr(Report(Result("merge", Outcome.FAIL, message="line one\n    x = 1")))
    assert text.splitlines()[1:] == ["  line one", "      x = 1"]


def test_what_a_failing_submission_printed_is_shown():
    printed = "\n".join(f"line {i}" for i in range(9))
    assert "line 8" in repr(Report(result(printed=printed)))
    assert "line 3" not in repr(Report(result(printed=printed)))
    assert "line 8" not in repr(Report(result(Outcome.PASS, printed=printed)))


def test_invariants_keep_the_order_they_were_tried_in():
    tried = [Finding(name, True) for name in "caba"]
    assert [invariant.name for invariant in invariants(tried)] == ["c", "a", "b"]


# --- terminal and pipe


def test_a_pipe_gets_plain_text_in_unbroken_lines():
    file = io.StringIO()
    print_lines(report_lines(result()), file)
    assert "\x1b" not in file.getvalue()
    assert file.getvalue().rstrip("\n") == repr(Report(result()))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_the_same_words_in_blue_and_vermilion(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    file = Terminal()
    print_lines(report_lines(result()), file)
    assert "38;2;213;94;0" in file.getvalue()  # vermilion
    assert "38;2;0;114;178" in file.getvalue()  # blue
    assert re.sub(r"\x1b\[[\d;]*m", "", file.getvalue()).rstrip("\n") == repr(Report(result()))


def test_markup_in_a_students_text_is_not_obeyed():
    file = Terminal()
    print_lines(report_lines(Result("x", Outcome.FAIL, message="[bold]x[/bold] [link=a]")), file)
    assert "[bold]x[/bold] [link=a]" in file.getvalue()


def test_a_students_terminal_escapes_are_made_visible():
    text = repr(Report(Result("x\x1b[2J", Outcome.FAIL, [Finding("a", False, detail="\x1b[1m")])))
    assert "\x1b" not in text
    assert text.count("\\x1b") == 2


# --- HTML

TEXT_TAGS = ("div", "span", "pre", "ul", "li", "strong", "small")
TAGS = {*TEXT_TAGS, "table", "caption", "thead", "tbody", "tr", "th", "td"}


class Checker(HTMLParser):
    """Collects tags, attributes and text, and that every tag is closed in turn."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("shown", [result(), passing(), Result("x", Outcome.NOT_WRITTEN)])
def test_html_is_well_formed_and_begins_with_the_verdict(shown):
    page = Checker(Report(shown)._repr_html_())
    assert page.open == []
    assert page.tags[0][1]["role"] == "status"
    assert page.text.startswith(shown.outcome)


def test_html_has_the_same_evidence_in_words():
    text = Checker(Report(result())._repr_html_()).text
    for words in ("✓ held", "✗ broken", "likely cause: the old sum is not rescaled", "12,288"):
        assert words in text


def test_every_text_of_a_student_is_escaped():
    finding = Finding(EVIL, False, EVIL, EVIL, EVIL, 1.0, 0.5)
    shown = Result(
        EVIL,
        Outcome.FAIL,
        [finding, Finding(EVIL + "2", True)],
        [TrafficFinding(EVIL, EVIL, 2, 1, 1, EVIL, EVIL)],
        message=EVIL,
        printed=EVIL,
    )
    html = Report(shown)._repr_html_()
    assert "<script" not in html
    assert {tag for tag, _ in Checker(html).tags} <= TAGS


def luminance(colour):
    def channel(part):
        value = int(part, 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    r, g, b = (channel(colour[i : i + 2]) for i in (1, 3, 5))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("outcome", Outcome)
def test_a_badge_can_be_read_and_is_not_green(outcome):
    colour = BADGES[outcome]
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5  # WCAG AA, white on the badge
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    assert green <= max(red, blue)


def test_only_the_badge_sets_colours_of_its_own():
    styles = [
        attributes.get("style", "")
        for _, attributes in Checker(Report(result())._repr_html_()).tags
    ]
    grounds = [s for s in styles if re.search(r"background:(?!transparent)", s)]
    inks = [s for s in styles if re.search(r"(?<!-)\bcolor:(?!inherit)", s)]
    assert len(grounds) == len(inks) == 1
