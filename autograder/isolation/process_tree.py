"""Ending a child and everything it started.

The child is a subreaper, so a process that left its parent and its session is still a descendant
as long as the child lives; and all carry a mark in their environment. A process that does both,
outlives the child and wipes its environment, is missed: only a PID namespace catches that one.
Outside Linux there is no /proc, and only the child's process group is ended.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from autograder.isolation.sandbox import MARK, Run

PROC = Path("/proc")
PATIENCE = 10.0  # seconds for killed processes to be gone; one inside the kernel may take a while


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
    while (found := find()) and time.monotonic() < limit:
        for pid in found:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.001)


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _family(run: Run) -> set[int]:
    """The live processes that descend from the child or carry its mark."""
    parents = _parents()
    family = {pid for pid in parents if _carries(pid, run.mark)}
    if run.process.returncode is None:  # not reaped, so the number is still the child's
        family.add(run.process.pid)
    while new := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= new
    return family & parents.keys()


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
