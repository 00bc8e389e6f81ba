"""Honest code in the isolated process: the same answers, the same meter, the same words."""

import inspect
import os
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from autograder.candidate import StudentFault
from autograder.in_process import InProcess
from autograder.isolation.isolated import Cell, Isolated
from autograder.isolation.limits import Limits
from autograder.isolation.rooms import clear_away, without_answers
from autograder.isolation.sandbox import Sandbox
from autograder.isolation.wall import NO_WALL, Wall, best_wall
from reference_numpy.machine import Machine
from tests.autograder.conftest import DOUBLE

ECHO = "def echo(*arguments, **keywords):\n    return (arguments, keywords)\n"


def in_child(source, name):
    return Isolated([Cell("your cell", source)], name)


def machine_with(x, dtype=np.float32):
    machine = Machine()
    X, Y = machine.hbm("X", x.astype(dtype)), machine.empty("Y", x.shape, dtype)
    return machine, [X, Y]


def run(candidate, x, dtype=np.float32, B=7):
    machine, arrays = machine_with(x, dtype)
    candidate.on_machine(machine, arrays, {"B": B})
    return machine


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("N", [1, 5, 97])
def test_same_bytes_and_same_traffic_as_in_process(N, dtype):
    x = np.random.default_rng(N).normal(size=(N, 5))
    names = {}
    exec(f"from autograder.prelude import *\n{DOUBLE}", names)
    here = run(InProcess(names["double"]), x, dtype)
    with in_child(DOUBLE, "double") as candidate:
        there = run(candidate, x, dtype)
    assert here.to_host("Y").tobytes() == there.to_host("Y").tobytes()
    assert here.traffic == there.traffic
    stores = [[e for e in m.events if e.kind == "store"] for m in (here, there)]
    assert [e.bounds for e in stores[0]] == [e.bounds for e in stores[1]]


def test_float64_is_rounded_once_to_the_dtype_of_hbm():
    value = 1 + 2.0**-11 + 2.0**-30  # via fp32 it would round to 1, in one step to 1 + 2⁻¹⁰
    source = f"def double(machine, X, Y, *, B):\n    Y[:] = np.full(X.shape, {value!r})\n"
    with in_child(source, "double") as candidate:
        machine = run(candidate, np.zeros((2, 2)), np.float16)
    assert machine.to_host("Y")[0, 0] == np.float16(value) == 1 + 2.0**-10


def test_values_come_back_as_they_went():
    value = {"a": [1, 2.5, True, None, "µ"], 3: (np.arange(6).reshape(2, 3), np.float32(1.5))}
    with in_child(ECHO, "echo") as candidate:
        (got,), keywords = candidate.call(value, scale=float("-inf"))
    assert keywords == {"scale": float("-inf")}
    assert got["a"] == value["a"]
    np.testing.assert_array_equal(got[3][0], value[3][0])
    assert got[3][1] == np.float32(1.5)
    assert got[3][1].dtype == np.float32


def test_arguments_are_copies():
    source = "def spoil(x):\n    x[:] = 0\n    return x\n"
    x = np.ones(4)
    with in_child(source, "spoil") as candidate:
        assert candidate.call(x).sum() == 0
    assert x.sum() == 4


def test_after_an_exception_the_next_call_is_answered():
    source = "def invert(x):\n    return 1 / x\n"
    with in_child(source, "invert") as candidate:
        with pytest.raises(StudentFault, match="ZeroDivisionError in line 2 of your cell"):
            candidate.call(0)
        assert candidate.call(4) == 0.25


def test_a_fault_in_a_helper_names_the_helper():
    cells = [Cell("helper cell 3", "x = 1\ny = undefined"), Cell("your cell", ECHO)]
    with pytest.raises(StudentFault, match=r"NameError in line 2 of helper cell 3") as fault:
        Isolated(cells, "echo").__enter__()
    assert "y = undefined" in str(fault.value)


def test_another_exercises_broken_definitions_are_passed_over():
    other = "import nowhere\nLEAST = -np.inf\nWRONG = LEAST + there\ndef helped(): return LEAST"
    cells = [Cell("cell 2", other, required=False)]
    cells.append(Cell("your cell", "def echo():\n    return helped()"))
    with Isolated(cells, "echo") as candidate:
        assert candidate.call() == -np.inf


def test_main_is_where_the_cells_live():
    source = """\
from dataclasses import dataclass
@dataclass
class Pair:
    a: int
def echo(): return Pair(3).a, __name__
"""
    with in_child(source, "echo") as candidate:
        assert candidate.call() == (3, "__main__")


def test_printing_is_kept_apart_and_can_be_read():
    with in_child("def echo():\n    print('hello \\x1b[31m')", "echo") as candidate:
        candidate.call()
        assert candidate.printed() == r"hello \x1b[31m"


def test_however_much_it_prints_it_does_not_fail_and_the_last_is_kept():
    source = """\
import sys
def echo():
    for _ in range(3000): print("y" * 4000)
    print("the last", file=sys.stderr)
    return 1
"""
    with in_child(source, "echo") as candidate:
        assert candidate.call() == 1
        assert candidate.printed().endswith("yyy\nthe last")


def test_what_a_notebook_shows_is_silent_here():
    source = """\
from autograder import check, doctor, hint
def echo():
    get_ipython().run_line_magic("matplotlib", "inline")
    display(doctor(), hint("echo"), progress(), ready(echo))
    return str(check(echo).result)
check(echo)
"""
    with in_child(source, "echo") as candidate:
        assert candidate.call() == "(nothing is shown while grading)"


def test_an_await_at_the_top_level_is_explained():
    with pytest.raises(StudentFault, match="A notebook awaits at the top level, grading does not"):
        in_child("import asyncio\nawait asyncio.sleep(0)", "echo").__enter__()


def test_a_line_is_quoted_as_python_counts_lines():
    with pytest.raises(StudentFault, match=r"in line 2 of your cell: .*\n    1 / 0"):
        in_child("# a\fb\u2028c\n1 / 0", "echo").__enter__()


@pytest.mark.skipif(
    os.geteuid() != 0 and best_wall() is NO_WALL, reason="without root and wall no thread starts"
)
def test_threads_may_load_at_the_same_time():
    source = """\
from concurrent.futures import ThreadPoolExecutor
def double(machine, X, Y, *, B):
    def one(rows):
        Y[rows] = 2 * X[rows]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, tiles(X.shape[0], B)))
"""
    x = np.arange(2000.0).reshape(500, 4)
    with in_child(source, "double") as candidate:
        machine = run(candidate, x, B=1)
    np.testing.assert_array_equal(machine.to_host("Y"), 2 * x)


def test_two_at_once_do_not_disturb_each_other():
    answers = {}

    def work(number):
        with in_child(ECHO, "echo") as candidate:
            answers[number] = [candidate.call(number, i)[0][0] for i in range(50)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: [number] * 50 for number in range(3)}


def test_time_counts_over_all_calls_but_not_the_judges_own():
    import time

    source = "import time\ndef nap(s):\n    time.sleep(s)\n"
    sandbox = Sandbox(Limits(seconds=0.5))
    with Isolated([Cell("your cell", source)], "nap", sandbox) as candidate:
        candidate.call(0.3)
        time.sleep(0.4)
        candidate.call(0.05)
        with pytest.raises(StudentFault, match=r"longer than 0\.5 s") as fault:
            candidate.call(0.3)
    assert fault.value.fatal


def test_the_command_line_can_be_wrapped_in_one_place():
    def wrap(command, rooms):
        assert rooms.work.is_dir()
        return ["/usr/bin/env", "WALL=1", *NO_WALL.wrap(command, rooms)]

    source = "import os\ndef wall(): return os.environ['WALL']"
    with Isolated(
        [Cell("your cell", source)], "wall", Sandbox(wall=Wall("env", wrap))
    ) as candidate:
        assert candidate.call() == "1"


def test_the_childs_copy_of_the_course_has_no_answers():
    marked = "    ### BEGIN SOLUTION\n    x = 2\n    ### END SOLUTION\n"
    stub = "    raise NotImplementedError\n"
    assert without_answers(f"def f():\n{marked}    y = 3\n{marked}") == (
        f"def f():\n{stub}    y = 3\n{stub}"
    )
    look = """\
import reference_numpy, autograder, pathlib
def look():
    roots = [pathlib.Path(m.__file__).parent for m in (reference_numpy, autograder)]
    return "".join(f.read_text() for root in roots for f in root.rglob("*.py"))
"""
    with in_child(look, "look") as candidate:
        everything = candidate.call()
    assert "def shifted_exp" in everything
    assert "BEGIN SOLUTION\n" not in everything
    assert "l = scale_a * l_a" not in everything


def test_folders_nested_deeper_than_python_may_call_are_cleared_away(tmp_path, monkeypatch):
    deep = tmp_path / "deep"
    deep.mkdir()
    monkeypatch.chdir(deep)
    for _ in range(300):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(tmp_path)
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        clear_away(deep)
    finally:
        sys.setrecursionlimit(usual)
    assert not deep.exists()
