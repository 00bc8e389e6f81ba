"""Ending a child and everything it started.

The child is a subreaper, so a process that left its parent and its session is still a descendant
as long as the child lives; and all carry a mark in their environment. A process that does both,
outlives the child and wipes its environment, is missed: only a PID namespace catches that one.
Outside Linux there is no /proc, and only the child's process group is ended.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

from autograder.isolation.sandbox import MARK, Run

PROC = Path("/proc")


def end(run: Run) -> int:
    """Kill the run's processes, all of them. Returns the child's exit status."""
    _freeze(run)
    for pid in _family(run):
        _signal(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(run.process.pid, signal.SIGKILL)
    return run.process.wait()


def _freeze(run: Run) -> None:
    """Stop every process before any is killed, so that none can start another meanwhile."""
    frozen: set[int] = set()
    while new := _family(run) - frozen:
        for pid in new:
            _signal(pid, signal.SIGSTOP)
        frozen |= new


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
