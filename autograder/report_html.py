"""The report as a panel in a notebook.

A verdict is never colour alone: the word stands beside it. Text takes the colour of the page, so
the panel reads on light and dark themes; only the badge brings a background of its own.
Everything that may hold a student's text is escaped.
"""

from html import escape

from autograder.report import (
    BROKEN,
    HELD,
    Invariant,
    headline,
    invariants,
    measure,
    next_step,
    printed,
    traffic_shown,
    traffic_title,
)
from autograder.result import Outcome, Result, TrafficFinding

# White on each of these has a contrast of at least 4.5 (the vermilion is darkened for that).
BADGES = {Outcome.PASS: "#0072B2", Outcome.FAIL: "#B84A00", Outcome.NOT_WRITTEN: "#5A5A5A"}
_PANEL = "border-left:4px solid {};padding:.4em .8em;line-height:1.45;color:inherit"
_BADGE = "background:{};color:#fff;font-weight:700;padding:.1em .5em;border-radius:3px"
_CELL = "padding:.1em .7em;text-align:{};background:transparent"


def report_html(result: Result) -> str:
    """HTML for one result; a screen reader hears it as a status message."""
    colour = BADGES[result.outcome]
    badge = f"<span style='{_BADGE.format(colour)}'>{result.outcome}</span>"
    parts = [f"<div>{badge} {escape(headline(result))}</div>", _paragraphs(next_step(result))]
    if result.findings:
        items = "".join(map(_invariant, invariants(result.findings)))
        parts.append(f"<ul style='list-style:none;padding-left:0;margin:.5em 0'>{items}</ul>")
    parts.append(_traffic(result))
    if lines := printed(result):
        parts.append("<div>your code printed, at the end:</div>" + _paragraphs("\n".join(lines)))
    return f"<div role='status' style='{_PANEL.format(colour)}'>{''.join(parts)}</div>"


def _paragraphs(text: str) -> str:
    if not text:
        return ""
    return f"<pre style='white-space:pre-wrap;margin:.5em 0;color:inherit'>{escape(text)}</pre>"


def _invariant(invariant: Invariant) -> str:
    shown = invariant.shown
    head = f"<strong>{HELD if invariant.held else BROKEN}</strong> {escape(invariant.name)}"
    if invariant.held:
        figures = measure(shown)
        return f"<li>{head}{f' <small>({escape(figures)})</small>' if figures else ''}</li>"
    where = " · ".join(filter(None, (shown.fixture, shown.detail, measure(shown))))
    cause = f"<div>likely cause: {escape(shown.cause)}</div>" if shown.cause else ""
    return f"<li>{head}<div style='margin-left:1.5em'>{_paragraphs(where)}{cause}</div></li>"


def _traffic(result: Result) -> str:
    rows, _, _ = traffic_shown(result.traffic)
    if not rows:
        return ""
    caption = escape(traffic_title(result))
    titles = ("array", "", "measured", "at least", "at most", "verdict")
    head = "".join(f"<th scope='col' style='{_CELL.format('left')}'>{t}</th>" for t in titles)
    body = "".join(map(_traffic_row, rows))
    return (
        "<table style='border-collapse:collapse;color:inherit'>"
        f"<caption style='text-align:left;color:inherit;white-space:nowrap'>{caption}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _traffic_row(row: TrafficFinding) -> str:
    verdict = f"<strong>{HELD if row.passed else BROKEN}</strong>"
    if row.cause and not row.passed:
        verdict += f": {escape(row.cause)}"
    numbers = "".join(
        f"<td style='{_CELL.format('right')}'>{number:,}</td>"
        for number in (row.measured, row.lower, row.upper)
    )
    left = _CELL.format("left")
    return (
        f"<tr><th scope='row' style='{left}'>{escape(row.array)}</th>"
        f"<td style='{left}'>{escape(row.direction)}</td>{numbers}"
        f"<td style='{left}'>{verdict}</td></tr>"
    )
