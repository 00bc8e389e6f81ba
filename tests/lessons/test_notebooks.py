"""Every notebook runs from top to bottom, and each check cell says what it ought to say."""

import time

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from lessons.build import COURSE
from tests.lessons.running import exercises, run_notebook, verdicts

SOLVED = sorted((COURSE / "solutions").glob("*.ipynb"))
UNSOLVED = sorted((COURSE / "lessons").glob("*.ipynb"))
LIMIT = 60  # seconds for a whole notebook


@pytest.fixture(autouse=True)
def own_jupyter_folders(tmp_path, monkeypatch):
    """What the person at this machine has configured must not matter, nor be written to."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@pytest.fixture
def folder(tmp_path):
    """Where the notebook runs: not in the course, as a student's copy does not."""
    (tmp_path / "my_lessons").mkdir()
    return tmp_path / "my_lessons"


def test_there_are_notebooks():
    assert [path.name for path in SOLVED] == [path.name for path in UNSOLVED] != []


@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_every_solution_passes(path, folder):
    everything_is("PASS", path, folder)


@pytest.mark.parametrize("path", UNSOLVED, ids=lambda path: path.stem)
def test_every_lesson_runs_unwritten(path, folder):
    everything_is("NOT WRITTEN", path, folder)


def everything_is(verdict, path, folder):
    """Each exercise is checked, every check says `verdict`, and all of it takes less than LIMIT."""
    start = time.perf_counter()
    notebook = run_notebook(path, folder, LIMIT)
    assert time.perf_counter() - start < LIMIT
    assert set(verdicts(notebook)) == {(name, verdict) for name in exercises(notebook)}


# What the two tests above would overlook if `run_notebook` and `verdicts` were lenient.


def notebook_of(tmp_path, *cells):
    """A notebook of (source, tags) cells."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [
        nbformat.v4.new_code_cell(source, metadata={"tags": tags}) for source, tags in cells
    ]
    nbformat.write(notebook, tmp_path / "made.ipynb")
    return tmp_path / "made.ipynb"


SHOW = "class Say:\n    def __init__(self, text): self.text = text\n    __repr__ = lambda s: s.text"


def test_verdicts_are_read_from_check_cells_alone(tmp_path):
    path = notebook_of(
        tmp_path,
        (SHOW, []),
        ("Say('FAIL  shown on purpose')", []),
        ("Say('PASS  f · 10 of 10')", ["check"]),
        ("Say('NOT WRITTEN  g')", ["check"]),
        ("print('PASS'); Say('FAIL  h')", ["check"]),
    )
    found = verdicts(run_notebook(path, tmp_path))
    assert found == [("f", "PASS"), ("g", "NOT WRITTEN"), ("h", "FAIL")]


@pytest.mark.parametrize("silent", ["x = 1", "print('PASS')", "'no PASS at the start'"])
def test_a_check_cell_without_a_verdict_fails(tmp_path, silent):
    ran = run_notebook(notebook_of(tmp_path, (silent, ["check"])), tmp_path)
    with pytest.raises(AssertionError, match="shows no verdict"):
        verdicts(ran)


def test_an_exercise_that_is_never_checked_fails(tmp_path):
    cells = [(SHOW, []), ("Say('PASS  f · 10 of 10')", ["check"]), ("x = 1", ["exercise"])]
    path = notebook_of(tmp_path, *cells)
    everything = nbformat.read(path, as_version=4)
    everything.cells[0].metadata.exercise = "f"
    nbformat.write(everything, path)
    everything_is("PASS", path, tmp_path)
    everything.cells[2].metadata.exercise = "g"
    nbformat.write(everything, path)
    with pytest.raises(AssertionError):
        everything_is("PASS", path, tmp_path)


def test_a_notebook_without_check_cells_fails(tmp_path):
    ran = run_notebook(notebook_of(tmp_path, ("1 + 1", ["exercise"])), tmp_path)
    with pytest.raises(AssertionError, match="nothing was checked"):
        verdicts(ran)


def test_a_cell_that_raises_fails(tmp_path):
    path = notebook_of(tmp_path, ("raise NotImplementedError", []))
    with pytest.raises(CellExecutionError):
        run_notebook(path, tmp_path)
