"""Behind the wall a submission sees Python, NumPy and its own rooms: nothing else is in reach."""

import os
import sys
from pathlib import Path

import pytest

from autograder.isolation import wall
from autograder.isolation.isolated import Cell, Isolated
from autograder.isolation.rooms import COURSE
from autograder.isolation.sandbox import Sandbox
from autograder.result import Outcome
from tests.autograder.conftest import DOUBLE

walled = pytest.mark.skipif(
    wall.best_wall() is wall.NO_WALL, reason="bubblewrap cannot run here: there is no wall to test"
)


def seen(expression, before=""):
    """What `expression` is in the child."""
    source = f"import os, signal, socket\n{before}\ndef look(): return {expression}"
    with Isolated([Cell("your cell", source)], "look") as candidate:
        return candidate.call()


@walled
def test_the_course_and_its_answers_are_not_there(tmp_path):
    (tmp_path / "another.ipynb").write_text("{}")
    gone = [COURSE / "reference_numpy", tmp_path / "another.ipynb", Path("/var")]
    assert seen(f"[os.path.exists(p) for p in {list(map(str, gone))}]") == [False] * 3


@walled
def test_only_its_work_room_can_be_written():
    shut = ["/x", "/dev/x", "/usr/x", f"{COURSE}/x", f"{sys.prefix}/x", "../course/x"]
    mine = f"/tmp/written-by-{os.getpid()}"
    writable = """\
def writable(path):
    try: open(path, "w").close()
    except OSError: return False
    return True
"""
    answers = seen(f"[writable(p) for p in {[*shut, mine, 'x']}]", writable)
    assert answers == [False] * 6 + [True] * 2
    assert not Path(mine).exists()


@walled
def test_it_sees_its_own_processes_only():
    numbers = [int(name) for name in seen("[n for n in os.listdir('/proc') if n.isdigit()]")]
    assert len(numbers) <= 2
    assert os.getpid() not in numbers or os.getpid() <= 2


@walled
def test_there_is_no_network():
    assert seen("[name for _, name in socket.if_nameindex()]") in ([], ["lo"])


@walled
@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM", "SIGINT", "SIGSTOP"])
def test_its_parent_cannot_be_hurt(grade, number):
    hurt = f"import os, signal\nos.kill(os.getppid(), signal.{number})\n"
    assert grade(hurt + DOUBLE).outcome is Outcome.PASS


@walled
def test_a_file_in_tmp_is_gone_for_the_next(grade):
    assert grade("open('/tmp/note', 'w').write('answers')\n" + DOUBLE).outcome is Outcome.PASS
    result = grade("open('/tmp/note')\n" + DOUBLE)
    assert "FileNotFoundError" in result.message


@walled
@pytest.mark.parametrize(
    "make", ["os.close(os.open(str(i), os.O_CREAT))", "os.makedirs(f'{i}/a/b')"]
)
def test_thousands_of_files_cost_no_time_afterwards(grade, make):
    cell = f"import os, itertools\n{DOUBLE}\nfor i in itertools.count(): {make}"
    result = grade(cell)  # conftest: less than ten seconds in all
    assert result.outcome is Outcome.FAIL
    assert "ran longer than 1 s" in result.message


@walled
def test_its_room_is_small(grade):
    fill = "for i in range(20): open(f'{i}', 'wb').write(b'x' * (7 << 20))\n"
    assert "No space left" in grade(fill + DOUBLE).message


def test_where_bubblewrap_does_not_start_there_is_no_wall(monkeypatch):
    monkeypatch.setattr(wall, "_programs", lambda: iter(["/nowhere/bwrap", "/bin/false"]))
    assert wall.best_wall.__wrapped__() is wall.NO_WALL


def test_a_course_beside_numpy_is_hidden_by_its_packages(monkeypatch):
    monkeypatch.setattr(wall, "packages", lambda: COURSE)
    hidden = wall._hidden()
    assert COURSE not in hidden
    assert {COURSE / "reference_numpy", COURSE / "autograder"} <= set(hidden)


def test_the_result_says_which_wall_stood(grade):
    assert grade(DOUBLE).wall == wall.best_wall().name
    assert Sandbox(wall=wall.NO_WALL).wall.name == "none"
