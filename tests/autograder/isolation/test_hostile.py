"""Broken and hostile submissions: each gets its own verdict, in time, and leaves nothing behind.

`nothing_is_left` (conftest) looks after every test for processes, folders and lost time.
"""

import os
import subprocess

import pytest

from autograder.isolation.wall import NO_WALL, best_wall
from autograder.result import Outcome
from tests.autograder.conftest import DOUBLE
from tests.autograder.isolation.conftest import processes_with, said

WALLS = list(dict.fromkeys((best_wall(), NO_WALL)))
NAP = 10_000_000 + os.getpid()  # seconds; tells our sleeping daemons from anybody else's
ROOT = os.geteuid() == 0  # to root the limit on processes does not apply: a fork succeeds
FORKS = ROOT or best_wall() is not NO_WALL


def kernel(body: str, before: str = "") -> str:
    """A cell whose `double` runs `body` first and is right otherwise."""
    lines = "\n".join("    " + line for line in body.splitlines())
    rest = "\n".join(DOUBLE.splitlines()[1:])
    return f"{before}\ndef double(machine, X, Y, *, B):\n{lines}\n{rest}\n"


# The student's process does own the channel: this finds the end it writes to and abuses it.
PIPES = """\
import os, stat, struct, json
def replies():
    fds = [fd for fd in range(3, 64) if os.path.exists(f"/proc/self/fd/{fd}")]
    pipes = [fd for fd in fds if stat.S_ISFIFO(os.fstat(fd).st_mode)]
    import fcntl
    return [fd for fd in pipes if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_WRONLY][0]
def forge(header, body=b"", lengths=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    sizes = lengths or (len(text), len(body))
    os.write(replies(), struct.pack("<IQ", *sizes) + text + body)
"""
LOOP = "while True: pass"
ENDLESS = "ran longer than 1 s"
NO_TILE = "something that no tile is"

BROKEN = {
    "endless loop that ignores SIGTERM": (
        kernel(f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{LOOP}"),
        ENDLESS,
    ),
    "loads for ever": (kernel("while True: X[0:1]"), ENDLESS),
    "stores for ever": (kernel("while True: Y[0:1] = 0"), ENDLESS),
    "endless loop at the top of the cell": (f"{DOUBLE}\n{LOOP}", ENDLESS),
    "endless loop that swallows every exception": (
        kernel("while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
        ENDLESS,
    ),
    "stops itself": (
        kernel("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
        ENDLESS,
    ),
    "memory hog, NumPy": (
        kernel("np.zeros(3 << 30, np.uint8)"),
        "MemoryError in line 3 of your cell: Unable to allocate 3.00 GiB",
    ),
    "memory hog, Python": (kernel("bytearray(3 << 30)"), "out of memory"),
    "os._exit(0)": (kernel("import os\nos._exit(0)"), "ended its own process (exit status 0)"),
    "sys.exit()": (kernel("import sys\nsys.exit(0)"), "asked Python to exit"),
    "kills itself": (
        kernel("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
        "ended by SIGKILL",
    ),
    "segmentation fault": (kernel("import ctypes\nctypes.string_at(0)"), "ended by SIGSEGV"),
    "recursion without end": (
        kernel("def deeper(): return deeper()\ndeeper()"),
        "RecursionError in line 3",
    ),
    "exception whose text raises": (
        kernel("class E(Exception):\n    def __str__(self): raise E\nraise E"),
        "its message could not be read",
    ),
    "exception with ten megabytes of text": (kernel("raise ValueError('x' * 10**7)"), "xxx …"),
    "terminal escapes in the message": (
        kernel(r"raise ValueError('\x1b[2J\x1b[32mPASS')"),
        r"\x1b[2J\x1b[32mPASS",
    ),
    "output flood": (kernel("while True: print('x' * 10**5)"), ENDLESS),
    "output flood that does not care": (
        kernel(
            "import os\nwhile True:\n    try: os.write(1, b'x' * 10**6)\n    except OSError: pass"
        ),
        ENDLESS,
    ),
    "huge file": (
        kernel("with open('big', 'wb') as f: f.write(b'x' * (9 << 20))"),
        "printed or wrote more than the grader keeps",
    ),
    "garbage on the channel": (
        kernel("os.write(replies(), b'garbage ' * 100)", PIPES),
        "the code sent the grader a message of",
    ),
    "huge frame": (
        kernel("forge({}, lengths=(10, 2**60))", PIPES),
        "the code sent the grader a message of",
    ),
    "half a frame, then silence": (
        kernel(f"os.write(replies(), b'123')\n{LOOP}", PIPES),
        ENDLESS,
    ),
    "half a frame, then death": (
        kernel("os.write(replies(), b'123')\nos._exit(3)", PIPES),
        "exit status 3",
    ),
    "header that is not JSON": (kernel("forge(b'hello')", PIPES), "bytes that are no message"),
    "header nested ten thousand deep": (
        kernel("forge(b'[' * 10**4 + b']' * 10**4)", PIPES),
        "bytes that are no message",
    ),
    "header that is a list": (kernel("forge(b'[1]')", PIPES), "a message without a header"),
    "header without an operation": (kernel("forge({})", PIPES), NO_TILE),
    "operation that is a list": (
        kernel("forge({'op': ['load'], 'array': 'X', 'bounds': [[0, 1], [0, 8]]})", PIPES),
        NO_TILE,
    ),
    "array that is not there": (
        kernel("forge({'op': 'load', 'array': 'expected', 'bounds': [[0, 1]]})", PIPES),
        NO_TILE,
    ),
    "array name that is a list": (
        kernel("forge({'op': 'load', 'array': ['X'], 'bounds': [[0, 1]]})", PIPES),
        NO_TILE,
    ),
    "negative bounds": (
        kernel("forge({'op': 'load', 'array': 'X', 'bounds': [[-5, 1], [0, 8]]})", PIPES),
        NO_TILE,
    ),
    "bounds beyond the array": (
        kernel("forge({'op': 'load', 'array': 'X', 'bounds': [[0, 10**9], [0, 8]]})", PIPES),
        NO_TILE,
    ),
    "bounds that are not whole": (
        kernel("forge({'op': 'load', 'array': 'X', 'bounds': [[0, 1.5], [0, 8]]})", PIPES),
        NO_TILE,
    ),
    "tile of the wrong size": (
        kernel(
            "forge({'op': 'store', 'array': 'Y', 'bounds': [[0, 1], [0, 8]], 'dtype': 'float32'},"
            " b'x' * 33)",
            PIPES,
        ),
        NO_TILE,
    ),
    "tile of Python objects": (
        kernel(
            "forge({'op': 'store', 'array': 'Y', 'bounds': [[0, 1], [0, 8]], 'dtype': 'object'},"
            " b'x' * 64)",
            PIPES,
        ),
        NO_TILE,
    ),
    "closes every file": (
        kernel("import os\nos.closerange(3, 64)\nimport time\ntime.sleep(60)"),
        "closed the grader's channel",
    ),
    "imports the oracle": (
        kernel("from reference_numpy.oracle import attention"),
        "While grading only NumPy and the names of the prelude are there",
    ),
    "imports the answers": (
        kernel("from reference_numpy.flash2_forward import flash2_forward"),
        "While grading only NumPy and the names of the prelude are there",
    ),
    "imports the exercises": (
        kernel("import autograder.exercise"),
        "While grading only NumPy and the names of the prelude are there",
    ),
    "copies HBM to the host": (kernel("machine.to_host('X')"), "cannot copy X to the host"),
    "reserves HBM of its own": (kernel("machine.empty('Z', (4,))"), "cannot reserve HBM"),
    "computes in HBM": (kernel("X @ X"), "X lives in HBM, where nothing is computed"),
    "holds more than SRAM": (
        kernel("a = X[0:16]; b = X[16:32]; c = X[32:37]\nd = X[0:1]"),
        "Load smaller tiles, or let go of one",
    ),
    "loads more than SRAM at once": (kernel("X[:]"), "Load a smaller tile"),
    "stores another shape": (kernel("Y[0:2] = np.ones((3, 8))"), "you stored (3, 8)"),
    "stores text": (kernel("Y[0:1] = 'PASS'"), "ValueError in line 3 of your cell"),
    "does not define the function": ("treble = 3\ndouble_ = 2", "does not define double"),
    "name is no function": ("double = 7", "'int' object is not callable"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_fault_gets_its_own_words(grade, name):
    source, words = BROKEN[name]
    result = grade(source)
    assert result.outcome is Outcome.FAIL
    assert words in said(result)
    assert result.earned.total == 0


def test_an_unwritten_kernel_is_not_a_fault(grade):
    result = grade("def double(machine, X, Y, *, B):\n    raise NotImplementedError")
    assert result.outcome is Outcome.NOT_WRITTEN
    assert result.earned.total == 0


def test_the_right_kernel_passes(grade):
    assert grade(DOUBLE).outcome is Outcome.PASS


def test_exceptions_in_del_and_noise_on_stderr_cost_nothing(grade):
    noisy = """\
import sys, warnings
class Noise:
    def __del__(self): raise RuntimeError("late")
"""
    result = grade(kernel("Noise()\nwarnings.warn('hm')\nprint('x', file=sys.stderr)", noisy))
    assert result.outcome is Outcome.PASS


# --- forging: whatever is written to the channel, the judge looks at HBM and at its own meter


def test_a_forged_done_stores_nothing(grade):
    result = grade(PIPES + "def double(machine, X, Y, *, B):\n    forge({'op': 'done'})\n    1 / 0")
    assert result.outcome is Outcome.FAIL
    assert result.earned.total == 0


def test_an_answer_before_the_question_is_noticed(grade):
    both = "text = b'{\"op\": \"done\"}'; frame = struct.pack('<IQ', len(text), 0) + text"
    result = grade(kernel(f"{both}\nos.write(replies(), frame + frame)\n{LOOP}", PIPES))
    assert result.outcome is Outcome.FAIL
    assert "wrote to the grader's channel unasked" in result.message


def test_a_forged_return_value_must_be_a_value(grade):
    forge = "forge({'op': 'returned', 'value': {'array': ['float64', [10**6, 10**6]]}}, b'x' * 8)"
    result = grade(f"{PIPES}\ndef total(x):\n    {forge}\n", "total")
    assert result.outcome is Outcome.FAIL
    assert "sent the grader an array of shape (1000000, 1000000)" in result.message


def test_the_meter_is_out_of_reach(grade):
    cheat = """\
machine.traffic.read = machine.traffic.write = lambda *_: None
type(machine)._record = lambda *_: None
for rows in tiles(X.shape[0], B): X[rows]
"""
    result = grade(kernel(cheat))
    assert result.outcome is Outcome.FAIL
    read = next(row for row in result.traffic if row.array == "X")
    assert read.measured == 2 * read.upper


def test_tiles_kept_outside_sram_fall_below_the_bound(grade):
    hoard = """\
kept = {}
def double(machine, X, Y, *, B):
    for rows in tiles(X.shape[0], B):
        Y[rows] = kept.setdefault(rows.start, np.zeros(Y[rows].shape))
"""
    result = grade(hoard)
    assert result.outcome is Outcome.FAIL
    unread = next(row for row in result.traffic if row.array == "X")
    assert unread.measured == 0 < unread.lower


def test_patching_numpy_in_the_child_changes_no_verdict(grade):
    patch = """\
np.allclose = np.array_equal = np.all = lambda *a, **k: True
np.isfinite = lambda x: np.ones(np.shape(x), bool)
np.testing.assert_allclose = lambda *a, **k: None
def double(machine, X, Y, *, B):
    for rows in tiles(X.shape[0], B):
        Y[rows] = 3 * X[rows]
"""
    result = grade(patch)
    assert result.outcome is Outcome.FAIL
    assert any(f.invariant == "doubled" and not f.passed for f in result.findings)


def test_nan_is_no_result(grade):
    result = grade(DOUBLE.replace("2 * X[rows]", "np.nan * X[rows]"))
    assert {f.invariant for f in result.findings if not f.passed} == {"finite", "doubled"}


LIAR = """\
class Liar(np.ndarray):
    def __array_ufunc__(self, *_, **__): return np.True_
    def __array_function__(self, *_, **__): return True
    def __abs__(self): return 0.0
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __le__(self, other): return True
def total(x):
    return np.zeros(()).view(Liar)
"""


def test_one_forged_frame_does_not_fill_the_judges_memory(grade):
    large = 64 << 20
    result = grade(kernel(f"forge({{}}, lengths=(2, {large}))", PIPES))
    assert "the code sent the grader a message of 67,108,866 bytes" in result.message


def test_an_array_that_lies_arrives_as_its_bytes(grade):
    assert grade(LIAR, "total").outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("object()", "your function returned a value of type object"),
        ("lambda: 0", "your function returned a value of type function"),
        ("np.array([object()])", "an array of dtype object"),
        ("1 + 2j", "a value of type complex"),
        ("{(1, 2): 3}", "a dict key of type tuple"),
        ("(lambda l: [l.append(l), l][1])([])", "lists nested more than 16 deep"),
        ("np.zeros(300 << 20, np.uint8)", "a message of"),
        ("'twelve'", "could not be examined"),
        ("10**400", "could not be examined"),
        ("None", "could not be examined"),
        ("[1, 2, 3]", "could not be examined"),
        ("{}", "could not be examined"),
    ],
)
def test_values_that_are_no_answer(grade, value, words):
    result = grade(f"def total(x):\n    return {value}", "total", seconds=20)
    assert result.outcome is Outcome.FAIL
    assert words in said(result)


# --- processes


def daemon(environment: str) -> str:
    """Starts a process that leaves the session and, twice forked, its parents too."""
    return f"""\
import os
def spawn():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(3, 64)
            os.execve("/bin/sleep", ["sleep", "{NAP}"], {environment})
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.name)
@pytest.mark.parametrize("environment", ["dict(os.environ)", "{}"])
def test_a_daemon_is_ended_with_the_submission(grade, environment, wall):
    if not ROOT and wall is NO_WALL:
        pytest.skip("without root and wall the fork itself is refused (next test)")
    result = grade(kernel("spawn()", daemon(environment)), wall=wall)
    assert result.outcome is Outcome.PASS  # the kernel itself was right
    assert processes_with(f"sleep\0{NAP}\0", "cmdline") == []


@pytest.mark.skipif(ROOT, reason="to root the limit on processes does not apply")
def test_without_a_wall_a_fork_is_refused(grade):
    result = grade(kernel("import os\nos.fork()"), wall=NO_WALL)
    assert result.outcome is Outcome.FAIL
    assert "BlockingIOError" in said(result)


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.name)
@pytest.mark.parametrize("environment", ["dict(os.environ)", "{}"])
def test_a_daemon_does_not_outlive_its_parent(grade, environment, wall):
    result = grade(kernel("spawn()\nos._exit(0)", daemon(environment)), wall=wall)
    assert result.outcome is Outcome.FAIL
    assert processes_with(f"sleep\0{NAP}\0", "cmdline") == []


@pytest.mark.skipif(not ROOT, reason="without root the fork itself is refused")
def test_without_a_wall_the_judges_own_children_are_left_alone(grade):
    for seconds in ("30", "31"):  # one that was there before, one in a session of its own
        ours = subprocess.Popen(["/bin/sleep", seconds], start_new_session=seconds == "31")
        try:
            result = grade(kernel("spawn()\nos._exit(0)", daemon("{}")), wall=NO_WALL)
            assert result.outcome is Outcome.FAIL
            assert ours.poll() is None
        finally:
            ours.kill()
            ours.wait()


@pytest.mark.skipif(not FORKS, reason="without root and wall the fork itself is refused")
def test_a_death_is_noticed_though_a_fork_holds_the_channel_open(grade):
    result = grade(kernel("import os, time\nif os.fork() == 0: time.sleep(60)\nos._exit(5)"))
    assert "ended its own process (exit status 5)" in result.message


def test_a_fork_bomb_is_frozen_and_ended(grade):
    bomb = """\
import os, time
for _ in range(5):
    os.fork()
time.sleep(60)
"""
    result = grade(kernel(bomb))
    assert result.outcome is Outcome.FAIL
    assert (ENDLESS if FORKS else "BlockingIOError") in said(result)


def test_a_forked_twin_is_ended_too(grade):
    result = grade(kernel("import os, time\nif os.fork() == 0: time.sleep(60)"))
    assert result.outcome is (Outcome.PASS if FORKS else Outcome.FAIL)


def test_a_thread_that_goes_on_writing(grade):
    thread = """\
import threading, time
def chatter():
    while True:
        time.sleep(0.001)
        forge({'op': 'done'})
threading.Thread(target=chatter, daemon=True).start()
time.sleep(0.1)
"""
    result = grade(kernel(thread, PIPES))
    assert result.outcome is Outcome.FAIL
    assert result.earned.total == 0


def test_odd_things_in_its_folder_are_cleared_away_and_nothing_else(grade, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("1")
    odd = f"""\
import os
os.makedirs("a/b/c"); open("a/b/c/f", "w").close(); os.symlink({str(outside)!r}, "a/link")
os.mkfifo("a/pipe"); os.chmod("a/b", 0); os.chmod("a", 0o500)
"""
    assert grade(odd + DOUBLE).outcome is Outcome.PASS
    assert (outside / "precious").read_text() == "1"


# --- what there is to see


def test_the_child_sees_nothing_of_ours(grade, monkeypatch):
    monkeypatch.setenv("COURSE_SECRET", "seed 1234")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    look = """\
import os, sys
def total(x):
    everything = repr((dict(os.environ), sys.argv, sys.path))
    leaks = [w for w in ("COURSE_SECRET", "1234", "/somewhere") if w in everything]
    raise ValueError(f"leaks {leaks}, works in {os.path.basename(os.getcwd())}")
"""
    assert "leaks [], works in work" in said(grade(look, "total"))
