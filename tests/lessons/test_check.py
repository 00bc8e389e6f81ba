"""`python -m lessons.build --check`: each of its rules, broken once on purpose."""

import json

import pytest

from lessons.faithful import unfaithful


@pytest.fixture
def snapshot(built):
    """What every file of the course holds, to see that checking writes nothing."""

    def read():
        return {path: path.read_bytes() for path in built.root.rglob("*") if path.is_file()}

    return read


def change_cell(path, cell_id, change):
    """Let `change` edit a cell of the notebook `path`, as a hand would."""
    notebook = json.loads(path.read_text())
    change(next(cell for cell in notebook["cells"] if cell["id"] == cell_id))
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    path.write_text(text)


def test_a_fresh_build_passes(built, snapshot, capsys):
    before = snapshot()
    assert built.run("--check") == 0
    assert snapshot() == before
    assert "1 lessons with 3 exercises are as their sources say" in capsys.readouterr().out


def test_nothing_built_fails_and_writes_nothing(course, capsys):
    assert course.run("--check") == 1
    error = capsys.readouterr().err
    assert "lessons/07_running_sum.ipynb: not built yet" in error
    assert "solutions/07_running_sum.ipynb: not built yet" in error
    assert not course.student.exists()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("source", "No loop is needed.", "One loop is needed."),
        ("reference", "return add(first, x)", "return add(x, first)"),
        ("cuda", "a[i] + b[i]", "b[i] + a[i]"),
    ],
)
def test_a_changed_source_makes_its_notebooks_stale(built, snapshot, capsys, file, old, new):
    built.replace(old, new, getattr(built, file))
    before = snapshot()
    assert built.run("--check") == 1
    assert snapshot() == before
    error = capsys.readouterr().err
    assert "solutions/07_running_sum.ipynb: stale" in error
    assert f"{new}" in error
    assert f"{old}" in error
    assert ("lessons/07_running_sum.ipynb: stale" in error) == (file == "source")


@pytest.mark.parametrize("which", ["student", "solved"])
def test_a_hand_edited_notebook_fails(built, capsys, which):
    built.replace("return 2 * x", "return x * 2", getattr(built, which))
    assert built.run("--check") == 1
    assert "stale, or edited by hand" in capsys.readouterr().err


def test_a_single_byte_counts(built):
    built.student.write_bytes(built.student.read_bytes().replace(b"\n", b"\r\n"))
    assert built.run("--check") == 1


def test_a_saved_output_fails(built, capsys):
    def run_the_cell(cell):
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["PASS\n"]}]

    change_cell(built.solved, "your-turn-check", run_the_cell)
    assert built.run("--check") == 1
    error = capsys.readouterr().err
    assert "solutions/07_running_sum.ipynb: stale" in error
    assert "cell 'your-turn-check': the copies differ in kind, id, tags or outputs" in error


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cells": 3}', '{"cells": [1]}', "[" * 10**5, "9" * 5000]
)
def test_a_notebook_that_is_none_is_stale_and_no_crash(built, capsys, text):
    built.student.write_text(text)
    assert built.run("--check") == 1
    assert "lessons/07_running_sum.ipynb: stale" in capsys.readouterr().err


def test_a_notebook_that_cannot_be_read_is_named(built, monkeypatch, capsys):
    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert built.run("--check") == 1
    error = capsys.readouterr().err
    assert error.endswith("07_running_sum.ipynb: cannot be read: Permission denied\n")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("folder", ["lessons", "solutions"])
def test_an_orphan_notebook_fails(built, capsys, folder):
    (built.root / folder / "09_gone.ipynb").write_text("{}")
    assert built.run("--check") == 1
    assert f"{folder}/09_gone.ipynb: no solutions/09_gone.py" in capsys.readouterr().err


def test_a_lesson_without_an_exercise_fails(course, capsys):
    course.source.write_text("# %% [markdown]\n# # Nothing to do\n")
    assert course.run() == 0
    assert course.run("--check") == 1
    assert "asks no exercise" in capsys.readouterr().err


def test_an_unknown_exercise_fails(built, capsys):
    assert built.run("--check", known=("running_sum", "mean")) == 1
    error = capsys.readouterr().err
    assert "exercise 'add_kernel' is unknown to autograder.exercise" in error
    assert "running_sum, mean" in error


def test_a_long_diff_is_cut_short(built, capsys):
    built.student.write_text("\n".join(map(str, range(500))))
    assert built.run("--check") == 1
    error = capsys.readouterr().err
    assert "more lines" in error
    assert len(error.splitlines()) < 40


# The comparison of the two copies must not depend on the build: here the notebooks are changed
# directly, and each change is one that a broken generator could make.


@pytest.fixture
def pair(built):
    """The student's and the solved notebook as JSON values, faithful to start with."""
    student, solved = (json.loads(p.read_text()) for p in (built.student, built.solved))
    assert unfaithful(student, solved) == []
    return student, solved


def cell(notebook, cell_id):
    return next(cell for cell in notebook["cells"] if cell["id"] == cell_id)


def edit(notebook, cell_id, old, new):
    target = cell(notebook, cell_id)
    text = "".join(target["source"])
    assert old in text
    target["source"] = text.replace(old, new, 1).splitlines(keepends=True)


FILLED_TOO_MUCH = {
    "a line outside a stub changed": ("mean", "total = sum(values)", "total = 0"),
    "a line outside a stub gone": ("mean", "    total = sum(values)\n", ""),
    "a line added above": ("mean", "def mean", "import math\ndef mean"),
    "a line added below": ("mean", "total / count", "total / count\nmean = None"),
    "less indented than its stub": ("mean", "        return 0.0", "    return 0.0"),
    "a stub left empty": ("mean", "        return 0.0\n", ""),
    "a stub filled with nothing": ("mean", "        return 0.0\n", "\n"),
    "a marker left": ("mean", "    count =", "    ### BEGIN SOLUTION\n    count ="),
    "a stub left": ("mean", "return 0.0", "raise NotImplementedError"),
    "signature changed": ("running-sum", "def add(a, b)", "def add(a, b, c=0)"),
    "comment changed": ("running-sum", "# Two functions", "# 2 functions"),
    "cuda outside changed": ("add-kernel", "blockIdx.x *", "blockIdx.y *"),
    "cuda closing brace gone": ("add-kernel", '\n}\n"""', '\n"""'),
    "launch changed": ("add-kernel", '"block": 256', '"block": 128'),
}


@pytest.mark.parametrize(
    ("exercise", "old", "new"), FILLED_TOO_MUCH.values(), ids=FILLED_TOO_MUCH.keys()
)
def test_solving_only_fills_stubs(pair, exercise, old, new):
    student, solved = pair
    edit(solved, f"exercise-{exercise}", old, new)
    assert any(f"exercise-{exercise}" in line for line in unfaithful(student, solved))


def test_outside_the_exercises_the_copies_agree(pair):
    student, solved = pair
    edit(solved, "07-the-running-sum-helper", "2 * x", "3 * x")
    assert "it is not an exercise" in unfaithful(student, solved)[0]


def test_a_student_copy_that_gives_the_solution_away_is_found(pair):
    student, solved = pair
    cell(student, "exercise-mean")["source"] = cell(solved, "exercise-mean")["source"]
    assert "leaves nothing to write" in unfaithful(student, solved)[0]


def test_a_marker_left_in_the_student_copy_is_found(pair):
    student, solved = pair
    edit(student, "exercise-mean", "    total", "    ### END SOLUTION\n    total")
    assert any("a marker is left in the student's" in line for line in unfaithful(student, solved))


def test_a_cell_more_is_found(pair):
    student, solved = pair
    solved["cells"].append(solved["cells"][-1])
    assert "the solved one 11" in unfaithful(student, solved)[-1]


def test_changed_tags_are_found(pair):
    student, solved = pair
    cell(solved, "your-turn-check")["metadata"]["tags"] = []
    assert "differ in kind, id, tags" in unfaithful(student, solved)[0]


def test_a_cell_with_many_stubs_is_compared_at_once(pair):
    student, solved = pair
    stub = "    # YOUR CODE HERE\n    raise NotImplementedError\n"
    filling = "    x = 1\n\n    y = 2\n"
    cell(student, "exercise-mean")["source"] = "def f():\n" + stub * 12
    cell(solved, "exercise-mean")["source"] = "def f():\n" + filling * 12 + "    !\nz = 3"
    assert unfaithful(student, solved) == [
        "cell 'exercise-mean': solving changes more than the stubs"
    ]
