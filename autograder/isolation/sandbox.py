"""How the student's process is started: its command line, its environment, the wall around it.

`python -I -S` keeps the installed course off the child's path; it runs on the copy in its rooms.
"""

import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from typing import BinaryIO

from autograder.isolation.limits import Limits
from autograder.isolation.process_tree import MARK, Run, adopt_orphans, children
from autograder.isolation.rooms import Rooms
from autograder.isolation.wall import NO_WALL, Wall, best_wall, packages

_START = "import sys; sys.path[:0] = sys.argv[3:]; from autograder.isolation.child import main; "
_MAIN = "main(int(sys.argv[1]), int(sys.argv[2]))"


@dataclass(frozen=True)
class Sandbox:
    """How submissions are run.

    Attributes:
        limits: time, memory and output of one exercise.
        wall: what stands around the child; by default the best there is here.
    """

    limits: Limits = field(default_factory=Limits)
    wall: Wall = field(default_factory=best_wall)

    def start(self, rooms: Rooms, pipes: tuple[int, int], output: BinaryIO) -> Run:
        """Start the child: it reads the first pipe, writes the second, prints to `output`."""
        mark = secrets.token_hex(16)
        if self.wall is NO_WALL:
            adopt_orphans()
        before = children()
        process = subprocess.Popen(
            self.wall.wrap(command(rooms, pipes), rooms),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=rooms.work,
            env=environment(rooms, mark),
            pass_fds=pipes,
            start_new_session=True,
        )
        return Run(process, mark, before)


def command(rooms: Rooms, pipes: tuple[int, int]) -> list[str]:
    """The child's command line: Python without site, user or environment settings."""
    python = [sys.executable, "-I", "-S", "-B", "-u", "-X", "utf8"]
    paths = [str(rooms.course), str(packages())]
    return [*python, "-c", _START + _MAIN, *map(str, pipes), *paths]


def environment(rooms: Rooms, mark: str) -> dict[str, str]:
    """Nothing of ours: one thread for the matrix products, a home, the mark."""
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    libraries = {k: v for k, v in os.environ.items() if k == "LD_LIBRARY_PATH"}
    return {
        **one_thread,
        **libraries,
        "HOME": str(rooms.work),
        "TMPDIR": str(rooms.work),
        MARK: mark,
    }
