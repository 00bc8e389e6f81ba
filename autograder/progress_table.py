"""The table that says where a student stands."""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from autograder import exercise as catalogue
from autograder.progress_file import Entry, ProgressFile

COLUMNS = ("lesson", "exercise", "verdict", "points", "hints read")


@dataclass(frozen=True)
class Progress:
    """Every exercise of the course with its latest verdict and best points."""

    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, folder: Path | None = None) -> "Progress":
        """Read the progress of a folder of notebooks; by default the current one."""
        entries = ProgressFile(folder).entries()
        rows = []
        for exercise in catalogue.all_exercises().values():
            entry = entries.get(exercise.id, Entry())
            possible, hints = exercise.points.total, len(exercise.hints)
            points = f"{min(entry.best, possible):g} of {possible:g}"
            hints = f"{min(entry.hints, hints)} of {hints}"
            rows.append((f"{exercise.lesson:02}", exercise.id, entry.outcome, points, hints))
        return cls(tuple(rows))

    def __repr__(self) -> str:
        table = [COLUMNS, *self.rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
        return "\n".join([*lines, self.summary])

    @property
    def summary(self) -> str:
        """How many exercises pass."""
        passed = sum(row[2] == "PASS" for row in self.rows)
        return f"{passed} of {len(self.rows)} exercises pass"

    def _repr_html_(self) -> str:
        cell = "padding:.1em .7em;text-align:left"
        head = "".join(f"<th scope='col' style='{cell}'>{name}</th>" for name in COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td style='{cell}'>{escape(text)}</td>" for text in row) + "</tr>"
            for row in self.rows
        )
        return (
            f"<table><caption style='text-align:left'>{self.summary}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
