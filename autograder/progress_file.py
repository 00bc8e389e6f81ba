"""Where a student stands, kept in `.progress.json` beside the notebooks.

Every notebook of a folder writes to the same file, each only the entry it has news about. The
file is replaced in one step, and one that cannot be read is started afresh: it is a convenience,
never a grade.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from autograder.result import Result

try:
    import fcntl
except ImportError:  # Windows: the last of two notebooks that write at once wins
    fcntl = None

NAME = ".progress.json"
LOCK = ".progress.lock"
_MOST = 10**9  # of anything; a file that says more was not written here


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
        kept = {k: v for k, v in stored.items() if k in usual and _makes_sense(k, v)}
        return cls(**usual | kept)


def _makes_sense(key: str, value: Any) -> bool:
    if key == "outcome":
        return isinstance(value, str) and value.isprintable()
    kinds = (int, float) if key == "best" else (int,)
    return type(value) in kinds and 0 <= value <= _MOST  # which NaN is not


class ProgressFile:
    """The progress of one folder.

    Args:
        folder: where the notebooks are; by default the current folder.
    """

    def __init__(self, folder: Path | None = None):
        self.path = (folder or Path()) / NAME

    def entry(self, exercise_id: str) -> Entry:
        """What is known of one exercise."""
        return self.entries().get(exercise_id, Entry())

    def entries(self) -> dict[str, Entry]:
        """What is known of each exercise, by id; empty if there is no readable file."""
        try:
            if not self.path.is_file():  # reading a pipe would never end
                return {}
            stored = json.loads(self.path.read_text(encoding="utf-8"))["exercises"]
            return {exercise_id: Entry.of(entry) for exercise_id, entry in stored.items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return {}

    def record(self, result: Result) -> None:
        """Note a result; the best one so far is kept beside the latest."""
        with self._entries_to_change() as entries:
            entry = entries.get(result.exercise, Entry())
            best = max(entry.best, result.earned.total)
            news = replace(entry, outcome=str(result.outcome), best=best, checks=entry.checks + 1)
            entries[result.exercise] = news

    def count_hint(self, exercise_id: str) -> None:
        """Note that one more hint has been read."""
        with self._entries_to_change() as entries:
            entry = entries.get(exercise_id, Entry())
            entries[exercise_id] = replace(entry, hints=entry.hints + 1)

    @contextmanager
    def _entries_to_change(self) -> Iterator[dict[str, Entry]]:
        """The entries, written when the block ends; no other notebook writes meanwhile.

        A folder that cannot be written, such as a shared one, stops nothing: what is new there
        is not kept.
        """
        with self._locked():
            entries = self.entries()
            yield entries
            with suppress(OSError):
                self._write(entries)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder's lock, where there are locks and the folder can be written."""
        try:
            lock = (self.path.parent / LOCK).open("a")
        except OSError:
            yield
            return
        with lock:
            if fcntl:
                with suppress(OSError):  # a network drive may have none
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, entries: dict[str, Entry]) -> None:
        stored = {"exercises": {name: asdict(entry) for name, entry in entries.items()}}
        target = Path(os.path.realpath(self.path))  # a link stays a link
        handle, temporary = tempfile.mkstemp(prefix=NAME, dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(stored, file, indent=1, sort_keys=True)
            os.chmod(temporary, _mode_for(target))
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise


def _mode_for(target: Path) -> int:
    """The permissions it has, else those of any new file: mkstemp lets only the owner read."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
