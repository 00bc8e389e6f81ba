import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from autograder.exercise import Tier
from autograder.grading import grade_submission
from autograder.isolation.limits import Limits
from autograder.isolation.sandbox import Sandbox
from autograder.isolation.wall import best_wall
from autograder.submission import read_submission
from tests.autograder.conftest import code_cell

SECONDS = 1.0
LONGEST = 10.0  # start, time limit and clean-up, even on a busy machine


def processes_with(text: str, source: str) -> list[str]:
    """Every live process with `text` in its environment ("environ") or its command ("cmdline")."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and text.encode() in (entry / source).read_bytes():
                found.append((entry / "cmdline").read_text())
    return found


@pytest.fixture(autouse=True)
def nothing_is_left(fake_exercises, monkeypatch, tmp_path):
    """After every test: no process of the submission, no folder of it, and it was quick."""
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(rooms))
    started = time.monotonic()
    yield
    assert time.monotonic() - started < LONGEST
    assert processes_with(f"HOME={rooms}", "environ") == []
    assert list(rooms.iterdir()) == []


@pytest.fixture
def grade(notebook):
    """Grade one cell that answers an exercise, with tight limits."""

    def grade(source, exercise="double", *, helpers=(), wall=None, **limits):
        cells = [code_cell(helper, tags=["helper"]) for helper in helpers]
        submission = read_submission(notebook(*cells, code_cell(source, exercise)))
        limits = Limits(**{"seconds": SECONDS, "memory": 1 << 30} | limits)
        sandbox = Sandbox(limits, wall or best_wall())
        (result,) = grade_submission(submission, sandbox, Tier.FULL, seed=1, only=[exercise])
        return result

    return grade


def said(result) -> str:
    """Everything a result says in words."""
    return "\n".join([result.message, *(finding.detail for finding in result.findings)])
