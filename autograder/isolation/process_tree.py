"""Ending the child and everything it started.

Behind a wall all of it ends with the first process in it. Without one, orphans come to the judge,
who adopts them (`adopt_orphans`): a process that left its parent and its session is still found,
as a descendant of the child, by the mark in its environment, or as a child of the judge that the
judge did not start. Outside Linux there is no /proc, and only the child's process group is ended.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "COURSE_RUN"  # environment variable by which a run's processes are found
PROC = Path("/proc")
PATIENCE = 10.0  # seconds for killed processes to be gone; one inside the kernel may take a while
_PR_SET_CHILD_SUBREAPER = 36
_children_of_ours: set[int] = set()  # runs that are not ended yet, in whatever thread


@dataclass(frozen=True)
class Run:
    """A child that has been started, the mark that its descendants carry, and who was there.

    Attributes:
        process: the child.
        mark: value of MARK in the environment of all that it starts.
        before: the judge's children before it; what is new may be an orphan of the run's.
    """

    process: subprocess.Popen
    mark: str
    before: frozenset[int] = frozenset()

    def __post_init__(self):
        _children_of_ours.add(self.process.pid)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that `end` finds it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> frozenset[int]:
    """The live children of this process."""
    return frozenset(pid for pid, parent in _parents().items() if parent == os.getpid())


def end(run: Run) -> int:
    """Kill the run's processes, all of them. Returns the child's exit status."""
    child = run.process.pid
    _freeze(run)
    _kill(lambda: _family(run) - {child})  # the child last: it is what holds the family together
    if run.process.returncode is None:  # not reaped, so the number is still the child's
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
    status = run.process.wait()
    _kill(lambda: _family(run))
    _children_of_ours.discard(child)
    return status


def _freeze(run: Run) -> None:
    """Stop every process before any is killed, so that none can start another meanwhile."""
    frozen: set[int] = set()
    while new := _family(run) - frozen:
        for pid in new:
            _signal(pid, signal.SIGSTOP)
        frozen |= new


def _kill(find: Callable[[], set[int]]) -> None:
    """Kill what `find` finds until it finds nothing: one may have been forking when it froze."""
    limit = time.monotonic() + PATIENCE
    killed: set[int] = set()
    while (found := find()) and time.monotonic() < limit:
        for pid in found:
            _signal(pid, signal.SIGKILL)
        killed |= found
        time.sleep(0.001)
    for pid in killed:
        with suppress(ChildProcessError):  # the adopted are ours to bury
            os.waitpid(pid, os.WNOHANG)


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _family(run: Run) -> set[int]:
    """The live processes that descend from the child, carry its mark or were orphaned by it."""
    parents = _parents()
    family = {pid for pid in parents if _carries(pid, run.mark)} | _orphans(run, parents)
    if run.process.returncode is None:  # not reaped, so the number is still the child's
        family.add(run.process.pid)
    while new := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= new
    return family & parents.keys()


def _orphans(run: Run, parents: dict[int, int]) -> set[int]:
    """The judge's children that it did not start: in a session that is not the judge's own."""
    new = {pid for pid, parent in parents.items() if parent == os.getpid()} - run.before
    return {pid for pid in new - _children_of_ours if _session(pid) != os.getsid(0)}


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return os.getsid(0)  # gone: as good as not of the run


def _parents() -> dict[int, int]:
    """Parent of every live process (zombies have ended already)."""
    parents = {}
    for entry in PROC.glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    return parents


def _carries(pid: int, mark: str) -> bool:
    with suppress(OSError):
        return f"{MARK}={mark}".encode() in (PROC / str(pid) / "environ").read_bytes()
    return False
