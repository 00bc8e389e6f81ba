import ast
import json
import os
import time

import pytest

from autograder.candidate import StudentFault
from autograder.cell_source import read_source
from autograder.submission import read_submission
from tests.autograder.conftest import DOUBLE, TOTAL, code_cell, notebook_text

pytestmark = pytest.mark.usefixtures("fake_exercises")


def fault(submission, exercise="double"):
    with pytest.raises(StudentFault) as raised:
        submission.cells_for(exercise)
    return str(raised.value)


def labels(cells):
    return [cell.label for cell in cells]


# --- files that are no notebook


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b" \n ", "the file is empty"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"def double(): pass", "it is not JSON"),
        (b'{"cells": [', "it is not JSON (was the download cut off?)"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[1, 2]", "JSON, but no object with cells"),
        (b"{}", "it has no list of cells"),
        (b'{"cells": {"a": 1}}', "it has no list of cells"),
        (b'{"worksheets": [], "nbformat": 3}', "old format 3"),
    ],
)
def test_a_file_that_is_no_notebook(tmp_path, data, words):
    path = tmp_path / "90_small.ipynb"
    path.write_bytes(data)
    submission = read_submission(path)
    assert words in submission.problem
    assert submission.expected == ("double", "total")  # by the number in its name


def test_a_missing_file_and_a_folder(tmp_path):
    assert "No such file" in read_submission(tmp_path / "90_no.ipynb").problem
    assert "directory" in read_submission(tmp_path).problem


def test_cells_of_any_shape_are_survived(tmp_path):
    cells = [3, None, {"cell_type": "code"}, {"cell_type": "code", "source": 7, "metadata": []}]
    cells += [{"cell_type": "code", "source": ["x = 1\n", 5], "metadata": {"tags": "helper"}}]
    cells += [code_cell(TOTAL, ["not", "a", "name"]), code_cell(DOUBLE, "double")]
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": 5}))
    assert read_submission(path).expected == ("double", "total")


# --- which exercises


def test_the_lesson_says_which_exercises_are_owed(notebook):
    assert read_submission(notebook(lesson=90)).expected == ("double", "total")
    assert read_submission(notebook(lesson=91, name="mine.ipynb")).expected == ("guess",)


def test_neither_the_name_nor_the_metadata_take_an_exercise_away(notebook):
    for lesson in (91, 99):
        assert {"double", "total"} <= set(read_submission(notebook(lesson=lesson)).expected)
    assert read_submission(notebook(name="91_x.ipynb")).expected == ("double", "total", "guess")


def test_without_a_lesson_the_name_of_the_file_decides(notebook):
    path = notebook(code_cell(DOUBLE), lesson=None, name="91_copy.ipynb")
    assert read_submission(path).expected == ("guess",)


def test_without_either_the_cells_decide(notebook):
    cells = [code_cell(TOTAL), code_cell("guess = 12", "guess"), code_cell("def other(): pass")]
    path = notebook(*cells, lesson=None, name="mine.ipynb")
    assert read_submission(path).expected == ("total", "guess")


def test_an_exercise_the_course_does_not_have_is_reported(notebook):
    assert read_submission(notebook(code_cell("x = 1", "duoble"))).expected[-1] == "duoble"


# --- which cells


def test_an_exercise_cell_is_found_by_its_metadata_even_when_others_define_the_name(notebook):
    submission = read_submission(notebook(code_cell(DOUBLE), code_cell("double = None", "double")))
    assert submission.cells_for("double")[-1].source == "double = None"


def test_without_metadata_the_only_function_decides(notebook):
    two = "def double(): pass\ndef other(): pass"
    submission = read_submission(notebook(code_cell(two), code_cell(DOUBLE)))
    assert submission.cells_for("double")[-1].source == DOUBLE


def test_helpers_run_where_they_stand_and_those_below_only_if_they_work(notebook):
    helper = code_cell("h = 1", tags=["helper"])
    later = code_cell("late = 1", tags=["helper"])
    other = code_cell("plot()")
    broken = code_cell("x = = 1", tags=["helper"])
    own = code_cell(DOUBLE, "double")
    cells = read_submission(notebook(helper, other, own, later, broken)).cells_for("double")
    assert labels(cells) == ["helper cell 1", "your cell", "helper cell 4"]
    assert [cell.required for cell in cells] == [True, True, False]


def test_of_another_exercise_only_the_definitions_are_taken(notebook):
    first = f"import math\nwhile True: pass\n@staticmethod\n{TOTAL}\nprint('x')"
    submission = read_submission(notebook(code_cell(first, "total"), code_cell(DOUBLE, "double")))
    other, own = submission.cells_for("double")
    assert own.source == DOUBLE
    kept = ["import math", "", "@staticmethod", "def total(x):", "    return float(np.sum(x))"]
    assert other.source.splitlines()[:5] == kept
    assert "print" not in other.source
    assert not other.required


def definitions_of(notebook, source):
    submission = read_submission(notebook(code_cell(source, "total"), code_cell(DOUBLE, "double")))
    return submission.cells_for("double")[0].source


def test_constants_of_another_exercises_cell_come_along(notebook):
    source = """\
BASE = 2
LEAST = -np.inf
ROWS: int = BASE * 8
LATER = [plot()]
RUN = open("x")
WHEN = plot(); MAX = 1
def total(x):
    return max(LEAST, np.sum(x)) + ROWS + RUN + MAX"""
    kept = definitions_of(notebook, source).split("\n")
    assert kept[:6] == ["BASE = 2", "LEAST = -np.inf", "ROWS: int = BASE * 8", "", "", ""]
    assert kept[6] == "def total(x):"


@pytest.mark.parametrize("odd", ["\f", "\u2028", "\x1c", "\x85"])
def test_lines_are_counted_as_python_counts_them(notebook, odd):
    source = f"# a{odd}b\r\nprint('x')\r\n{TOTAL}"
    assert definitions_of(notebook, source) == f"\n\n{TOTAL}"
    text = fault(read_submission(notebook(code_cell(f"# a{odd}b\nx = = 1", "double"))))
    assert "in line 2 of your cell" in text
    assert text.endswith("x = = 1")


def test_lost_metadata_and_a_second_function(notebook):
    source = f"def helped(x):\n    return x\n{DOUBLE}"
    submission = read_submission(notebook(code_cell("def other(): pass"), code_cell(source)))
    assert submission.cells_for("double")[0].source == source
    twice = read_submission(notebook(code_cell(source), code_cell(source)))
    assert "cells 1 and 2" in fault(twice)


@pytest.mark.parametrize("name", ["double ", "\ufeffdouble", "\u00a0double\n"])
def test_what_clings_to_a_copied_id_does_no_harm(notebook, name):
    submission = read_submission(notebook(code_cell(DOUBLE, name)))
    assert submission.cells_for("double")[0].source == DOUBLE


@pytest.mark.parametrize(
    "source",
    ["\ufeff" + DOUBLE, DOUBLE.replace("    ", "\u00a0" * 4), DOUBLE.replace("\n", "\r\n")],
)
def test_what_came_along_from_elsewhere_does_no_harm(notebook, source):
    submission = read_submission(notebook(code_cell(source, "double")))
    assert submission.cells_for("double")[0].source == DOUBLE


def test_a_missing_cell(notebook):
    text = fault(read_submission(notebook(code_cell(TOTAL))))
    assert "no cell for this exercise" in text
    assert "`exercise: double`" in text


def test_two_cells_for_one_exercise(notebook):
    cells = [code_cell(DOUBLE, "double"), code_cell("x = 1"), code_cell(DOUBLE, "double")]
    assert "cells 1 and 3 both answer this exercise" in fault(read_submission(notebook(*cells)))


def test_two_cells_without_metadata(notebook):
    submission = read_submission(notebook(code_cell(DOUBLE), code_cell(DOUBLE)))
    assert "cells 1 and 2" in fault(submission)


# --- source


def test_a_syntax_error_names_the_line(notebook):
    source = "def double(machine, X, Y, *, B):\n    Y[:] = 2 *\n"
    text = fault(read_submission(notebook(code_cell(source, "double"))))
    assert text == "syntax error in line 2 of your cell: invalid syntax.\n    Y[:] = 2 *"


def test_a_broken_helper_is_named(notebook):
    cells = [code_cell("x = = 1", tags=["helper"]), code_cell(DOUBLE, "double")]
    assert "in line 1 of helper cell 1" in fault(read_submission(notebook(*cells)))


def test_a_broken_cell_of_another_exercise_is_passed_over(notebook):
    submission = read_submission(
        notebook(code_cell("x = = 1", "total"), code_cell(DOUBLE, "double"))
    )
    assert labels(submission.cells_for("double")) == ["your cell"]


def test_a_broken_cell_without_metadata_is_still_found(notebook):
    submission = read_submission(notebook(code_cell("def double(:\n    pass")))
    assert "syntax error in line 1 of your cell" in fault(submission)


@pytest.mark.parametrize(
    ("magic", "python"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("%%time\nx = 1", "pass\nx = 1"),
        ("if True:\n    !ls\n", "if True:\n    pass\n"),
        ("x = (7\n  % 4)", "x = (7\n  % 4)"),
        ("%time\nx = (7\n  % 4)\n!ls it's", "pass\nx = (7\n  % 4)\npass"),
        ("%time\ns = '''\n! a\n'''", "pass\ns = '''\n! a\n'''"),
        ("s = '''\n%d\n'''", "s = '''\n%d\n'''"),
    ],
)
def test_magic_lines_do_nothing_and_python_is_left_alone(magic, python):
    assert read_source(magic).python == python


@pytest.mark.parametrize(
    "magic", ["%%bash\nls", "files = !ls", "t = %timeit 1", "double?", "np.exp??"]
)
def test_other_magic_is_said_to_be_magic(notebook, magic):
    text = fault(read_submission(notebook(code_cell(f"{magic}\n", "double"))))
    assert "notebook magic, not Python" in text


@pytest.mark.parametrize(
    "source",
    [
        "(" * 5000 + ")" * 5000,
        "-" * 50_000 + "1",
        "x\0y",
        "x = 1\n" * 50_000,
        "[" * 300 + "]" * 300,
    ],
    ids=["parentheses", "minus", "null", "long", "brackets"],
)
def test_source_that_python_cannot_read(notebook, source):
    assert fault(read_submission(notebook(code_cell(source, "double")))).startswith("syntax error")


def test_the_digest_is_of_the_file(notebook):
    import hashlib

    path = notebook(code_cell(DOUBLE, "double"))
    assert read_submission(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_byte_order_mark_does_no_harm(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text("\ufeff" + notebook_text([code_cell(DOUBLE, "double")]), encoding="utf-8")
    assert not read_submission(path).problem


# --- what would take for ever


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_not_opened(tmp_path, make):
    path = tmp_path / "90_small.ipynb"
    make(path)
    assert "not a file that can be read" in read_submission(path).problem


def test_a_file_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("autograder.submission.NOTEBOOK_LIMIT", 100)
    path = tmp_path / "90_small.ipynb"
    path.write_bytes(b" " * 101)
    assert "clear its outputs" in read_submission(path).problem


def test_too_much_code_is_not_even_parsed(notebook):
    cells = [code_cell("x" + "()" * 90_000) for _ in range(12)]
    started = time.monotonic()
    assert "at most 2,000,000 are read" in read_submission(notebook(*cells)).problem
    assert time.monotonic() - started < 1


def test_each_cell_is_parsed_once(notebook, monkeypatch):
    parsed = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda source: parsed.append(source) or parse(source))
    source = f"{DOUBLE}# {time.time()}"
    submission = read_submission(notebook(code_cell(source), code_cell(TOTAL, "total")))
    for name in ("double", "total", "double"):
        submission.cells_for(name)
    assert parsed.count(source) == 1


def test_a_thousand_lines_of_magic_are_given_up_soon(notebook):
    started = time.monotonic()
    text = fault(read_submission(notebook(code_cell("%time\n" * 30_000, "double"))))
    assert "notebook magic" in text
    assert time.monotonic() - started < 5
