import errno
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from autograder.command_line import main
from autograder.isolation import wall
from autograder.stopping import stoppable
from tests.autograder.conftest import DOUBLE, TOTAL, code_cell, notebook_text

pytestmark = pytest.mark.usefixtures("fake_exercises")
RIGHT = [code_cell(DOUBLE, "double"), code_cell(TOTAL, "total")]
WRONG = [code_cell(DOUBLE.replace("2 *", "3 *"), "double"), code_cell(TOTAL, "total")]


@pytest.fixture
def path(notebook):
    return notebook(*RIGHT)


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err.replace(f"autograder: {wall.NOTICE}\n", "")


def test_all_pass(capsys, path):
    status, out, err = run(capsys, "grade", path)
    assert (status, err) == (0, "")
    assert out.splitlines()[0].startswith(f"{path}  sha256 ")
    assert "2 of 2 exercises pass, 20 of 20 points" in out
    assert "\x1b" not in out


def test_one_fails(capsys, notebook):
    status, out, _ = run(capsys, "grade", notebook(*WRONG))
    assert status == 1
    assert "FAIL  double" in out
    assert "PASS  total" in out
    assert "1 of 2 exercises pass" in out


def test_an_unwritten_notebook_fails_without_a_traceback(capsys, notebook):
    stubs = [
        code_cell("def double(machine, X, Y, *, B):\n    raise NotImplementedError", "double"),
        code_cell("def total(x):\n    raise NotImplementedError", "total"),
    ]
    status, out, err = run(capsys, "grade", notebook(*stubs))
    assert (status, err) == (1, "")
    assert out.count("NOT WRITTEN") == 2
    assert "Traceback" not in out


def test_a_folder_is_searched(capsys, tmp_path):
    (tmp_path / "a" / ".ipynb_checkpoints").mkdir(parents=True)
    (tmp_path / "a" / "one.ipynb").write_text(notebook_text(RIGHT))
    (tmp_path / "a" / ".ipynb_checkpoints" / "one.ipynb").write_text("{}")
    (tmp_path / "two.ipynb").write_text(notebook_text(WRONG))
    (tmp_path / "index.ipynb").write_text(notebook_text([], lesson=None))
    status, out, _ = run(capsys, "grade", tmp_path)
    assert status == 1
    assert "3 of 4 exercises pass" in out
    assert "no exercise in this notebook" in out
    assert "checkpoints" not in out


def test_a_file_that_is_no_notebook_fails(capsys, tmp_path):
    file = tmp_path / "90_x.ipynb"
    file.write_text("hello")
    status, out, _ = run(capsys, "grade", file)
    assert status == 1
    assert "not a notebook: it is not JSON" in out


def test_one_exercise_of_several(capsys, notebook):
    status, out, _ = run(capsys, "grade", notebook(*WRONG), "--exercise", "total")
    assert status == 0
    assert "1 of 1 exercises pass" in out


def test_where_there_is_no_wall_it_says_so(capsys, path, monkeypatch):
    monkeypatch.setattr(wall, "_programs", lambda: iter(()))
    wall.best_wall.cache_clear()
    try:
        assert main(["grade", str(path)]) == 0
    finally:
        wall.best_wall.cache_clear()
    assert capsys.readouterr().err == f"autograder: {wall.NOTICE}\n"


def test_json_says_everything(capsys, notebook, tmp_path):
    file = tmp_path / "out.json"
    cell = code_cell("def double(machine, X, Y, *, B): pass", "double")  # NaN stays in HBM: error ∞
    status, _, _ = run(capsys, "grade", notebook(cell), "--json", file, "--seed", 5)
    document = json.loads(file.read_text(), parse_constant=pytest.fail)
    assert status == 1
    assert (document["seed"], document["tier"]) == (5, "full")
    (submission,) = document["submissions"]
    assert len(submission["sha256"]) == 64
    double, total = submission["results"]
    assert (double["outcome"], total["outcome"]) == ("FAIL", "FAIL")
    assert any(finding["error"] == "inf" for finding in double["findings"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: COMMAND"),
        (["bake"], "invalid choice: 'bake'"),
        (["grade"], "required: PATH"),
        (["grade", "nowhere.ipynb"], "nowhere.ipynb does not exist"),
        (["grade", "{empty}"], "holds no notebook"),
        (["grade", "{path}", "--exercise", "tripel"], "there are: double, total, guess"),
        (["grade", "{path}", "--exercise", "guess"], "nothing to grade"),
        (["grade", "{path}", "--seconds", "-1"], "give a time above 0"),
        (["grade", "{path}", "--seconds", "soon"], "give a time above 0"),
        (["grade", "{path}", "--seconds", "nan"], "give a time above 0"),
        (["grade", "{path}", "--memory", "1M"], "give 256M or more"),
        (["grade", "{path}", "--memory", "much"], "give 256M or more"),
        (["grade", "{path}", "--tier", "slow"], "choose quick or full"),
        (["grade", "{path}", "--json", "-"], "name a file"),
        (["grade", "{path}", "--json", "/nowhere/x.json"], "a folder that exists"),
        (["grade", "{path}", "--json", "{empty}"], "name a file"),
        (["grade", "{path}", "--json", "{path}"], "is a notebook to be graded"),
        (["grade", "{path}", "--json", "{path}/x.json"], "Not a directory"),
        (["grade", "{path}", "--json", "{empty}/" + 300 * "x"], "File name too long"),
        (["grade", "{path}", "--json", ""], "names no file"),
        (["grade", "{path}", "--seed", "-1"], "give a whole number, 0 or above"),
        (["grade", "{path}", "--seed", "x"], "give a whole number, 0 or above"),
        (["grade", ""], "'' names no file"),
        (["grade", 5000 * "x"], "File name too long"),
        (["grade", "\x1b[2J\n.ipynb"], "\\x1b[2J\\n.ipynb does not exist"),
        (["progress", "{path}"], "is not a folder"),
        (["progress", 5000 * "x"], "File name too long"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(capsys, path, tmp_path, arguments, words):
    (tmp_path / "empty").mkdir()
    filled = [a.format(path=path, empty=tmp_path / "empty") for a in arguments]
    before = path.read_bytes()
    status, out, err = run(capsys, *filled)
    assert (status, out) == (2, "")
    assert path.read_bytes() == before
    assert words in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["doctor", "list", "progress", "grade"])
def test_every_command_has_help(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert "--json FILE" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["doctor", "list", "progress"])
def test_every_command_writes_json(capsys, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, command, "--json", "out.json")[0] == 0
    assert json.loads((tmp_path / "out.json").read_text())


def test_list_names_the_exercises(capsys):
    out = run(capsys, "list")[1]
    assert "90  double                   10 points  Twice as much" in out


GRADE = """\
import sys, autograder.exercise
from tests.autograder.fake_exercises import FAKES
autograder.exercise.all_exercises = lambda: FAKES
from autograder.command_line import main
from autograder.isolation import wall
sys.exit(main(sys.argv[1:]))
"""


def as_command(*arguments, **how):
    """The command in a process of its own, as a shell would start it."""
    command = [sys.executable, "-c", GRADE, *map(str, arguments)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, **how)


def test_a_closed_stdout_is_no_reason_to_stop(path, tmp_path):
    file = tmp_path / "out.json"
    done = as_command("grade", path, "--json", file, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(file.read_text())["submissions"][0]["earned"] == 20


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("arguments", [["list"], ["grade"], ["list", "--json", "/dev/full"]])
def test_a_full_disk_is_one_line(path, arguments):
    with open("/dev/full", "w") as full:
        done = as_command(*arguments, *([path] if arguments == ["grade"] else []), stdout=full)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].endswith("No space left on device") or "--json" in arguments
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_encoding_without_our_characters_gets_escapes(path):
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = as_command("grade", path, stdout=subprocess.PIPE, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2713 held" in done.stdout


def test_a_file_name_cannot_steer_the_terminal(capsys, notebook):
    status, out, _ = run(capsys, "grade", notebook(*RIGHT, name="90_\x1b[31m\nPASS.ipynb"))
    assert status == 0
    assert "90_\\x1b[31m\\nPASS.ipynb  sha256" in out
    assert "\x1b" not in out


def test_a_folder_that_cannot_be_read_is_not_passed_over(capsys, path, monkeypatch):
    def refuse(folder):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr("os.scandir", refuse)
    status, _, err = run(capsys, "grade", path.parent)
    assert (status, err) == (2, f"autograder: Permission denied: {path.parent}\n")


def test_progress_in_a_folder_that_is_gone(capsys, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    status, out, err = run(capsys, "progress")
    assert (status, err) == (0, "")
    assert out.endswith("0 of 3 exercises pass\n")


@pytest.mark.parametrize("signals", ["SIGTERM", "SIGHUP", "SIGINT", "SIGINT SIGINT SIGTERM"])
@pytest.mark.parametrize("delay", [0, 0.7], ids=["as a child starts", "as it runs"])
def test_stopped_half_way_it_writes_what_it_has_and_leaves_nothing(
    notebook, tmp_path, signals, delay
):
    slow = "import time\ntime.sleep(60)\n" + TOTAL
    file, rooms = tmp_path / "out.json", tmp_path / "rooms"
    rooms.mkdir()
    path = notebook(code_cell(DOUBLE, "double"), code_cell(slow, "total"))
    command = [sys.executable, "-c", GRADE, "grade", str(path), "--json", str(file)]
    environment = os.environ | {"TMPDIR": str(rooms)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        while not process.stdout.readline().startswith("PASS  double"):
            pass
        time.sleep(delay)
        for name in signals.split():
            process.send_signal(getattr(signal, name))
        _, err = process.communicate(timeout=30)
    first = signals.split()[0]
    assert err == f"autograder: stopped by {first}\n"
    assert process.returncode == 128 + getattr(signal, first)
    (submission,) = json.loads(file.read_text())["submissions"]
    assert [result["outcome"] for result in submission["results"]] == ["PASS"]
    assert list(rooms.iterdir()) == []


def test_what_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def in_terminal(*arguments):
    """Everything that a command shows on a terminal, and its exit status."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", GRADE, *map(str, arguments)],
        stdin=end,
        stdout=end,
        stderr=end,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"},
    )
    os.close(end)
    shown = b""
    while select.select([terminal], [], [], 20)[0]:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # Linux: the other end is closed
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    return shown.decode(), process.wait(timeout=10)


def test_a_terminal_gets_colour_and_a_bar_when_it_takes_long(notebook):
    slow = "import time\ntime.sleep(2.6)\n" + TOTAL
    path = notebook(code_cell(slow, "total"), code_cell(DOUBLE, "double"))
    shown, status = in_terminal("grade", path)
    assert status == 0
    assert "grading" in shown
    assert "\x1b[1;38" in shown
    assert "2 of 2 exercises pass" in shown


def test_a_terminal_gets_no_bar_for_quick_work(path):
    shown, status = in_terminal("grade", path)
    assert status == 0
    assert "grading" not in shown
