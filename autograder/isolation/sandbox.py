"""The one place that says how the student's process is started: rooms, command, environment.

The child runs on a copy of the few course files it needs. That copy holds no answers, no oracle
and no exercises, and `python -I -S` keeps the installed course off its path.
"""

import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from autograder.isolation.limits import Limits

COURSE = Path(__file__).resolve().parent.parent.parent
COURSE_FILES = (
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
)
MARK = "COURSE_RUN"  # environment variable by which a run's processes are found
_ANSWER = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION$", re.MULTILINE | re.DOTALL)
_START = "import sys; sys.path[:0] = sys.argv[3:]; from autograder.isolation.child import main; "
_MAIN = "main(int(sys.argv[1]), int(sys.argv[2]))"


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
        for name in COURSE_FILES:
            target = rooms.course / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(without_answers((COURSE / name).read_text("utf-8")), "utf-8")
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


def readable() -> list[Path]:
    """What the child reads besides its rooms: Python itself, and where NumPy is installed."""
    paths = {Path(p).resolve() for p in (sys.prefix, sys.base_prefix)} | {_packages()}
    return sorted(paths)


def _packages() -> Path:
    return Path(np.__file__).resolve().parent.parent


Wrap = Callable[[list[str], Rooms], list[str]]


def no_wall(command: list[str], _rooms: Rooms) -> list[str]:
    """Start the child as it is: limits and a process of its own, no further wall."""
    return command


@dataclass(frozen=True)
class Sandbox:
    """How submissions are run.

    Attributes:
        limits: time, memory and output of one exercise.
        wrap: turns the child's command line into the one that is started, for instance with a
            sandbox program in front of it. File descriptors must stay open across it.
    """

    limits: Limits = field(default_factory=Limits)
    wrap: Wrap = no_wall

    def start(self, rooms: Rooms, pipes: tuple[int, int], output: BinaryIO) -> "Run":
        """Start the child: it reads the first pipe, writes the second, prints to `output`."""
        mark = secrets.token_hex(16)
        process = subprocess.Popen(
            self.wrap(command(rooms, pipes), rooms),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=rooms.work,
            env=environment(rooms, mark),
            pass_fds=pipes,
            start_new_session=True,
        )
        return Run(process, mark)


@dataclass(frozen=True)
class Run:
    """A child that has been started, and the mark that its descendants carry."""

    process: subprocess.Popen
    mark: str


def command(rooms: Rooms, pipes: tuple[int, int]) -> list[str]:
    """The child's command line: Python without site, user or environment settings."""
    python = [sys.executable, "-I", "-S", "-B", "-u", "-X", "utf8"]
    paths = [str(rooms.course), str(_packages())]
    return [*python, "-c", _START + _MAIN, *map(str, pipes), *paths]


def environment(rooms: Rooms, mark: str) -> dict[str, str]:
    """Nothing of ours: one thread for the matrix products, a home, the mark."""
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    libraries = {k: v for k, v in os.environ.items() if k == "LD_LIBRARY_PATH"}
    return {**one_thread, **libraries, "HOME": str(rooms.work), MARK: mark}
