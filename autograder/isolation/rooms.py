"""The folders of one run: a copy of the few course files the child needs, and its own work room.

The copy holds no answers, no oracle and no exercises. What a student calls in a notebook and what
does nothing while grading (`check`, `hint`) is there as a stand-in.
"""

import os
import re
import secrets
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent.parent
_COPIED = (
    "reference_numpy/__init__.py",
    "reference_numpy/machine.py",
    "reference_numpy/traffic.py",
    "reference_numpy/tiling.py",
    "reference_numpy/online_softmax.py",
    "autograder/__init__.py",
    "autograder/prelude.py",
    "autograder/candidate.py",
    "autograder/cuda_kernel.py",
    "autograder/faults.py",
    "autograder/in_process.py",
    "autograder/launch_text.py",
    "autograder/values.py",
    "autograder/isolation/__init__.py",
    "autograder/isolation/child.py",
    "autograder/isolation/frames.py",
    "autograder/isolation/limits.py",
    "autograder/isolation/remote_machine.py",
    "autograder/isolation/stand_ins.py",
)
COURSE_FILES = {name: name for name in _COPIED}
STAND_INS = dict.fromkeys(
    ("autograder/notebook.py", "autograder/doctor_report.py"), "autograder/isolation/stand_ins.py"
)
_ANSWER = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Rooms:
    """The folders of one run: `course` is only read, `work` is the child's own."""

    base: Path

    @property
    def course(self) -> Path:
        """The course files that the child may import."""
        return self.base / "course"

    @property
    def work(self) -> Path:
        """The child's current folder and HOME; thrown away afterwards."""
        return self.base / "work"

    @classmethod
    def open(cls) -> "Rooms":
        """Make the rooms in a new temporary folder."""
        rooms = cls(Path(tempfile.mkdtemp(prefix="submission-")))
        rooms.work.mkdir()
        for name, source in (COURSE_FILES | STAND_INS).items():
            target = rooms.course / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(without_answers((COURSE / source).read_text("utf-8")), "utf-8")
        return rooms

    def close(self) -> None:
        """Throw them away, whatever was built inside."""
        with suppress(OSError):
            clear_away(self.base)


def clear_away(folder: Path) -> None:
    """Delete a folder and all in it, however deeply nested: `shutil.rmtree` is recursive.

    What lies inside a folder is moved up before that folder goes, so every path stays short.
    """
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            for inner in list(os.scandir(entry.path)):
                if inner.is_dir(follow_symlinks=False):
                    os.chmod(inner.path, 0o700)
                os.rename(inner.path, folder / secrets.token_hex(16))
            os.rmdir(entry.path)
    os.rmdir(folder)


def without_answers(source: str) -> str:
    """A course file with `raise NotImplementedError` for every solution that is marked in it."""
    return _ANSWER.sub(r"\1raise NotImplementedError", source)
