"""Where a student stands, kept in `.progress.json` beside the notebooks.

Every notebook of a folder writes to the same file, each only the entry it has news about. The
file is replaced in one step, and one that cannot be read is started afresh: it is a convenience,
never a grade.
"""

import json
import os
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from autograder.result import Result

NAME = ".progress.json"


@dataclass(frozen=True)
class Entry:
    """What is known of one exercise: latest verdict, best points, checks made, hints read."""

    outcome: str = "not tried"
    best: float = 0
    checks: int = 0
    hints: int = 0

    @classmethod
    def of(cls, stored: Any) -> "Entry":
        """The entry in `stored`, as far as it makes sense."""
        usual, stored = asdict(cls()), stored if isinstance(stored, dict) else {}
        kinds = {"outcome": str, "best": int | float}
        kept = {k: v for k, v in stored.items() if k in usual and isinstance(v, kinds.get(k, int))}
        return cls(**usual | kept)


class ProgressFile:
    """The progress of one folder.

    Args:
        folder: where the notebooks are; by default the current folder.
    """

    def __init__(self, folder: Path | None = None):
        self.path = (folder or Path.cwd()) / NAME

    def entry(self, exercise_id: str) -> Entry:
        """What is known of one exercise."""
        return self.entries().get(exercise_id, Entry())

    def entries(self) -> dict[str, Entry]:
        """What is known of each exercise, by id; empty if there is no readable file."""
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))["exercises"]
            return {exercise_id: Entry.of(entry) for exercise_id, entry in stored.items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return {}

    def record(self, result: Result) -> None:
        """Note a result; the best one so far is kept beside the latest."""
        entry = self.entry(result.exercise)
        best = max(entry.best, result.earned.total)
        news = replace(entry, outcome=str(result.outcome), best=best, checks=entry.checks + 1)
        self._write(result.exercise, news)

    def count_hint(self, exercise_id: str) -> None:
        """Note that one more hint has been read."""
        entry = self.entry(exercise_id)
        self._write(exercise_id, replace(entry, hints=entry.hints + 1))

    def _write(self, exercise_id: str, entry: Entry) -> None:
        entries = self.entries()  # read again: another notebook may have written meanwhile
        entries[exercise_id] = entry
        stored = {"exercises": {name: asdict(entry) for name, entry in entries.items()}}
        try:
            handle, temporary = tempfile.mkstemp(prefix=NAME, dir=self.path.parent)
        except OSError:
            return  # a folder that cannot be written, such as a shared one: go on without
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(stored, file, indent=1, sort_keys=True)
        os.replace(temporary, self.path)
