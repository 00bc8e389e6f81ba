"""A result in words: what was tried, what held, and for what did not: where, how much, why.

The report is a list of lines made of styled pieces. Plain text joins the pieces, the terminal
colours them (rich), and the notebook has its own form of the same parts (`report_html`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TextIO

from autograder.faults import printable
from autograder.result import Finding, Outcome, Result, TrafficFinding

Piece = tuple[str, str]  # (style, text); the style is a key of COLOURS or ""
Line = list[Piece]

# Okabe and Ito's blue and vermilion, which differ for every kind of colour vision.
COLOURS = {"pass": "#0072B2", "fail": "#D55E00", "quiet": ""}
PRINTED = 5  # lines
HELD, BROKEN = "✓ held", "✗ broken"
_STYLE = {Outcome.PASS: "pass", Outcome.FAIL: "fail", Outcome.NOT_WRITTEN: "quiet"}


@dataclass(frozen=True)
class Report:
    """A result that shows itself: as text at the prompt, as a panel in a notebook."""

    result: Result

    def __repr__(self) -> str:
        return "\n".join("".join(text for _, text in line) for line in report_lines(self.result))

    def _repr_html_(self) -> str:
        from autograder.report_html import report_html

        return report_html(self.result)


@dataclass(frozen=True)
class Invariant:
    """All that was found out about one named invariant; `shown` is the finding to show for it."""

    name: str
    held: bool
    fixtures: int
    shown: Finding


def invariants(findings: Iterable[Finding]) -> list[Invariant]:
    """The findings by invariant, in the order they were first tried; the worst one is shown.

    One mistake breaks many invariants: its cause is said in full the first time only.
    """
    by_name: dict[str, list[Finding]] = {}
    for finding in findings:
        by_name.setdefault(finding.invariant, []).append(finding)
    said: set[str] = set()
    found = []
    for name, tried in by_name.items():
        shown = max(tried, key=_badness)
        if shown.cause and shown.cause in said:
            shown = replace(shown, cause="the same")
        said.add(shown.cause)
        found.append(Invariant(name, all(f.passed for f in tried), len(tried), shown))
    return found


def _badness(finding: Finding) -> tuple[bool, float]:
    if finding.error is None or not finding.allowed:
        return not finding.passed, 0.0
    return not finding.passed, finding.error / finding.allowed


def traffic_shown(traffic: list[TrafficFinding]) -> tuple[list[TrafficFinding], int, int]:
    """One fixture's rows (the first that is wrong, else the first), fixtures right, and tried."""
    fixtures = [list(rows) for _, rows in groupby(traffic, lambda row: row.fixture)]
    wrong = [rows for rows in fixtures if not all(row.passed for row in rows)]
    shown = (wrong or fixtures or [[]])[0]
    return shown, len(fixtures) - len(wrong), len(fixtures)


def memories(traffic: Iterable[TrafficFinding]) -> str:
    """Which memories the rows are about."""
    return "HBM and shared-memory" if any(row.array == "shared" for row in traffic) else "HBM"


def headline(result: Result) -> str:
    """What stands after the verdict: exercise, points, seconds."""
    points = f"{result.earned.total:g} of {result.possible.total:g} points"
    return f"{result.exercise} · {points} · {result.seconds:.2f} s"


def measure(finding: Finding) -> str:
    """The error against its budget, where one was measured and the detail does not say it."""
    if finding.error is None or finding.allowed is None or "allowed" in finding.detail:
        return ""
    return f"error {finding.error:.2g}, allowed {finding.allowed:.2g}"


def next_step(result: Result) -> str:
    """What to do about an exercise that has no verdict on its merits."""
    if result.outcome is Outcome.NOT_WRITTEN:
        return f'Write it where it says YOUR CODE HERE; hint("{result.exercise}") gives a nudge.'
    return result.message


def report_lines(result: Result) -> list[Line]:
    """The whole report as lines of styled pieces."""
    style = _STYLE[result.outcome]
    lines: list[Line] = [[(style, str(result.outcome)), ("", f"  {headline(result)}")]]
    lines += [[("", f"  {text}")] for text in next_step(result).splitlines()]
    for invariant in invariants(result.findings):
        lines += _invariant_lines(invariant)
    lines += _traffic_lines(result) + _printed_lines(result)
    return [[(style, printable(text)) for style, text in line] for line in lines]


def printed(result: Result) -> list[str]:
    """The last lines that a submission printed, unless it passed."""
    return [] if result.outcome is Outcome.PASS else result.printed.splitlines()[-PRINTED:]


def _printed_lines(result: Result) -> list[Line]:
    lines = printed(result)
    heading = ["  your code printed, at the end:"] if lines else []
    return [[("", text)] for text in (*heading, *(f"      {line}" for line in lines))]


def _invariant_lines(invariant: Invariant) -> list[Line]:
    word, style = (HELD, "pass") if invariant.held else (BROKEN, "fail")
    shown = invariant.shown
    line: Line = [(style, f"  {word:<9}"), ("", invariant.name)]
    if invariant.held:
        figures = measure(shown)
        return [[*line, ("quiet", f"  ({figures})" if figures else "")]]
    lines = [line]
    where = " · ".join(filter(None, (shown.fixture, _first_line(shown.detail), measure(shown))))
    lines += [[("", f"      {text}")] for text in (where, *_further_lines(shown.detail)) if text]
    if shown.cause:
        lines.append([("", f"      likely cause: {shown.cause}")])
    return lines


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _further_lines(text: str) -> list[str]:
    return text.splitlines()[1:]


def traffic_title(result: Result) -> str:
    """What the traffic table shows, and whether it counts: a wrong answer is cheap."""
    rows, right, tried = traffic_shown(result.traffic)
    of = f"fixture {rows[0].fixture}; " if rows[0].fixture else ""
    exact = all(finding.passed for finding in result.findings)
    counts = "" if exact else "; counts once every invariant holds"
    return f"{memories(rows)} traffic in bytes ({of}{right} of {tried} fixtures right{counts})"


def _traffic_lines(result: Result) -> list[Line]:
    rows, _, _ = traffic_shown(result.traffic)
    if not rows:
        return []
    title = f"  {traffic_title(result)}"
    columns = f"  {'':<9}{'array':<7}{'':<9}{'measured':>12}{'at least':>12}{'at most':>12}"
    lines: list[Line] = [[("", title)], [("quiet", columns)]]
    for row in rows:
        word, style = (HELD, "pass") if row.passed else (BROKEN, "fail")
        figures = f"{row.measured:>12,}{row.lower:>12,}{row.upper:>12,}"
        lines.append([(style, f"  {word:<9}"), ("", f"{row.array:<7}{row.direction:<9}{figures}")])
        if row.cause and not row.passed:
            lines.append([("", f"      likely cause: {row.cause}")])
    return lines


def print_lines(lines: list[Line], file: TextIO) -> None:
    """Write lines to `file`: in colour on a terminal, as plain text anywhere else."""
    if not file.isatty():
        file.writelines("".join(text for _, text in line) + "\n" for line in lines)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=file, highlight=False)
    for line in lines:
        pieces = [(text, _terminal_style(style)) for style, text in line]
        console.print(Text.assemble(*pieces), soft_wrap=True)


def _terminal_style(style: str) -> str:
    return {"pass": f"bold {COLOURS['pass']}", "fail": f"bold {COLOURS['fail']}"}.get(style, "")
