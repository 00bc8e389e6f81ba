"""Where a student stands, kept in `.progress.json` beside the notebooks.

Every notebook of a folder writes to the same file, each only the entry it has news about. The
file is replaced in one step, and one that cannot be read is started afresh: it is a convenience,
never a grade.
"""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.result import Result

NAME = ".progress.json"
Entry = dict[str, Any]


class ProgressFile:
    """The progress of one folder.

    Args:
        folder: where the notebooks are; by default the current folder.
    """

    def __init__(self, folder: Path | None = None):
        self.path = (folder or Path.cwd()) / NAME

    def entries(self) -> dict[str, Entry]:
        """What is known of each exercise, by id; empty if there is no readable file."""
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))["exercises"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}
        if not isinstance(entries, dict):
            return {}
        return {name: entry for name, entry in entries.items() if isinstance(entry, dict)}

    def record(self, result: Result) -> None:
        """Note a result; the best one so far is kept beside the latest."""

        def news(entry: Entry) -> Entry:
            best = max(_number(entry.get("best")), result.earned.total)
            checks = int(_number(entry.get("checks"))) + 1
            return {"outcome": str(result.outcome), "best": best, "checks": checks}

        self._change(result.exercise, news)

    def hints_given(self, exercise_id: str) -> int:
        """How many hints of an exercise have been read."""
        return int(_number(self.entries().get(exercise_id, {}).get("hints")))

    def count_hint(self, exercise_id: str) -> None:
        """Note that one more hint has been read."""
        self._change(exercise_id, lambda entry: {"hints": int(_number(entry.get("hints"))) + 1})

    def _change(self, exercise_id: str, news: Callable[[Entry], Entry]) -> None:
        entries = self.entries()  # read again: another notebook may have written meanwhile
        entry = entries.get(exercise_id, {})
        entries[exercise_id] = entry | news(entry)
        self._replace(json.dumps({"exercises": entries}, indent=1, sort_keys=True))

    def _replace(self, text: str) -> None:
        try:
            handle, temporary = tempfile.mkstemp(prefix=NAME, dir=self.path.parent)
        except OSError:
            return  # a folder that cannot be written, such as a shared one: go on without
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, self.path)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
