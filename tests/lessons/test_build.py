"""The notebooks that the build makes from the sample lesson."""

import json
import resource
import subprocess
import sys

import jupytext
import nbformat
import pytest

from lessons.build import COURSE, build_all
from lessons.source import read_lesson
from tests.lessons.conftest import SAMPLE

SOURCES = sorted([*(SAMPLE / "solutions").glob("*.py"), *(COURSE / "solutions").glob("*.py")])


def cells_of(path):
    return {cell["id"]: cell for cell in json.loads(path.read_text())["cells"]}


def text_of(path, cell_id):
    return "".join(cells_of(path)[cell_id]["source"])


def test_student_copy_has_stubs_where_the_solution_was(built):
    assert text_of(built.student, "exercise-running-sum") == (
        "# Two functions: the second uses the first.\n"
        "def add(a, b):\n"
        '    """Return a + b."""\n'
        "    # YOUR CODE HERE\n"
        "    raise NotImplementedError\n"
        "\n"
        "\n"
        "@np.vectorize\n"
        "def running_sum(x):\n"
        '    """Return x plus START.\n'
        "\n"
        "    Blank lines inside stay.\n"
        '    """\n'
        "    first = START\n"
        "\n"
        "    # YOUR CODE HERE\n"
        "    raise NotImplementedError"
    )


def test_solved_copy_has_the_solution_without_markers(built):
    assert text_of(built.solved, "exercise-mean") == (
        "def mean(values):\n"
        "    total = sum(values)\n"
        "    if not values:\n"
        "        return 0.0\n"
        "    count = len(values)\n"
        "\n"
        "    return total / count"
    )
    assert "SOLUTION" not in built.solved.read_text()


def test_cuda_becomes_a_string_with_the_line_numbers_of_its_file(built):
    solved = text_of(built.solved, "exercise-add-kernel")
    scope = {}
    exec(solved, scope)
    expected = [line for line in built.cuda.read_text().splitlines() if "SOLUTION" not in line]
    assert scope["ADD_KERNEL"].splitlines() == expected
    assert scope["launch"] == {"grid": "N // 256", "block": 256}
    exec(text_of(built.student, "exercise-add-kernel"), scope)
    assert scope["ADD_KERNEL"].splitlines()[2:] == ["    // YOUR CODE HERE", "}"]


def test_ids_come_from_headings_exercises_and_tags(built):
    assert list(cells_of(built.student)) == [
        "banner",
        "07-the-running-sum",
        "07-the-running-sum-helper",
        "your-turn",
        "exercise-running-sum",
        "your-turn-check",
        "exercise-add-kernel",
        "your-turn-check-2",
        "exercise-mean",
        "your-turn-check-3",
    ]
    assert list(cells_of(built.solved)) == list(cells_of(built.student))


def test_ids_outside_its_section_survive_a_new_cell(built):
    before = list(cells_of(built.student))
    built.replace(
        "# %% [markdown]\n# ## Your turn", "# %%\nx = 1\n\n# %% [markdown]\n# ## Your turn"
    )
    built.run()
    assert [i for i in cells_of(built.student) if i in before] == before


def test_metadata_keeps_exercise_and_tags(built):
    cells = cells_of(built.student)
    assert cells["exercise-running-sum"]["metadata"] == {
        "exercise": "running_sum",
        "tags": ["exercise"],
    }
    assert cells["exercise-mean"]["metadata"]["tags"] == ["exercise", "helper"]
    assert cells["your-turn-check"]["metadata"] == {"tags": ["check"]}
    notebook = json.loads(built.student.read_text())
    assert notebook["metadata"]["course"] == {"lesson": 7}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"


def test_banner_names_the_source_and_has_a_badge_only_with_a_repository(built):
    assert "solutions/07_running_sum.py" in text_of(built.student, "banner")
    assert "colab" not in built.student.read_text()
    (built.root / "pyproject.toml").write_text(
        '[project]\nurls = { Repository = "https://github.com/someone/course" }\n'
    )
    assert built.run() == 0
    address = "colab.research.google.com/github/someone/course/blob/main/"
    assert f"{address}lessons/07_running_sum.ipynb" in text_of(built.student, "banner")
    assert f"{address}solutions/07_running_sum.ipynb" in text_of(built.solved, "banner")
    assert built.run("--check") == 0


def test_a_second_build_changes_no_byte(built, capsys):
    before = built.student.read_bytes(), built.solved.read_bytes()
    capsys.readouterr()
    assert built.run() == 0
    assert (built.student.read_bytes(), built.solved.read_bytes()) == before
    assert "wrote" not in capsys.readouterr().out


def test_notebooks_are_valid_and_written_as_nbformat_writes_them(built):
    for path in (built.student, built.solved):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert nbformat.writes(notebook) + "\n" == path.read_text()
        assert all(not c.outputs for c in notebook.cells if c.cell_type == "code")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_jupytext_reads_the_same_cells(path):
    theirs = jupytext.read(path, fmt="py:percent").cells
    ours = read_lesson(path).cells
    assert [(c.cell_type == "markdown", c.source.strip("\n")) for c in theirs] == [
        (c.markdown, c.text) for c in ours
    ]
    assert [c.metadata.get("exercise") for c in theirs] == [c.exercise for c in ours]


def test_an_invalid_notebook_is_never_written(course, monkeypatch, capsys):
    monkeypatch.setattr("lessons.notebook._METADATA", {"kernelspec": "python3"})
    assert course.run() == 1
    assert "lessons/07_running_sum.ipynb: not a valid notebook" in capsys.readouterr().err
    assert not course.student.exists()


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), None])
def test_a_notebook_that_cannot_be_written_is_named(course, monkeypatch, capsys, error):
    def refuse(*_):
        raise error

    if error:
        monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    else:
        course.student.mkdir(parents=True)
    assert course.run() == 1
    why = error.strerror if error else "Is a directory"
    wanted = f"lessons/07_running_sum.ipynb: cannot be written: {why}\n"
    assert capsys.readouterr().err == wanted


def test_help_names_the_option():
    done = run_module("--help")
    assert done.returncode == 0
    assert "--check" in done.stdout


def test_checking_the_whole_course_takes_less_than_two_seconds():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run_module("--check")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    # Seconds of processor time: what else the machine is doing must not matter.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


def run_module(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lessons.build", *arguments],
        cwd=COURSE,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_order_of_files_does_not_matter(course):
    course.replace("# 07", "# 08", course.source)
    other = course.source.with_name("01_first.py")
    other.write_text(course.source.read_text())
    assert [lesson.name for lesson in build_all(course.root)] == ["01_first", "07_running_sum"]
