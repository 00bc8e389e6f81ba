"""Whatever is wrong in a lesson's source stops the build and is named with its place."""

import pytest

from tests.lessons.test_build import text_of

CUDA, REFERENCE = "cuda", "reference"

FAULTS = {
    # name: (file to change, old text, new text, what the message must say)
    "no end": ("source", "        ### END SOLUTION\n", "", "nested block; the one of line 45"),
    "never ended": ("source", "    return total / count\n    ### END SOLUTION\n", "", "no `END"),
    "no begin": ("source", "        ### BEGIN SOLUTION\n", "", "has no `BEGIN SOLUTION`"),
    "indent of end": (
        "source",
        "        ### END SOLUTION",
        "    ### END SOLUTION",
        "line 47 (cell 8, exercise mean): indented otherwise than the begin in line 45",
    ),
    "body less indented": (
        "source",
        "        return 0.0",
        "    return 0.0",
        "line 46 (cell 8, exercise mean): indented less",
    ),
    "body more indented": (
        "source",
        "        ### BEGIN SOLUTION\n        return 0.0\n        ### END SOLUTION",
        "    ### BEGIN SOLUTION\n        return 0.0\n    ### END SOLUTION",
        "indented more than the block's markers",
    ),
    "empty block": ("source", "        return 0.0\n", "", "the block is empty"),
    "misspelt": ("source", "    ### END SOLUTION", "    ## END SOLUTION", "line 47"),
    "misspelt case": ("source", "### BEGIN SOLUTION", "### Begin solution", "misspelt marker"),
    "trailing words": ("source", "### BEGIN SOLUTION", "### BEGIN SOLUTION 1", "misspelt"),
    "two comment styles": ("source", "### END", "// END", "must not end with another"),
    "top level": (
        "source",
        'launch = {"grid": "N // 256", "block": 256}',
        "### BEGIN SOLUTION\nlaunch = 1\n### END SOLUTION",
        "a stub at top level would stop the student's notebook",
    ),
    "in the reference": (
        REFERENCE,
        "    return a + b\n    ### END SOLUTION",
        "    return a + b",
        "reference_numpy/running_sum.py, line 25 "
        "(included by solutions/07_running_sum.py, cell 4, exercise running_sum): nested",
    ),
    "in the cuda file": (CUDA, "// END", "/// END", "cupy_kernels/add.cu, line 7 (included by"),
    "three quotes": (CUDA, "c[i] =", 'c[i] /*"""*/ =', "three double quotes"),
    "no marker": (
        REFERENCE,
        None,
        "def add(): pass\ndef running_sum(): pass\n",
        "line 26 (cell 4, exercise running_sum): an exercise without a `### BEGIN SOLUTION`",
    ),
    "marker elsewhere": (
        "source",
        "    return 2 * x",
        "    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION",
        "line 17 (cell 2): solution markers outside an exercise",
    ),
    "unknown module": (
        "source",
        "running_sum import",
        "runing import",
        "no reference_numpy/runing",
    ),
    "unknown name": ("source", "add, running_sum", "sub", "defines no sub at its top level"),
    "constant": ("source", "add, running_sum", "START", "defines no START"),
    "renamed": ("source", "import add, running_sum", "import add as plus", "without `as`"),
    "relative": ("source", "from reference_numpy.running_sum", "from .x", "without `as`"),
    "no import": ("source", "from reference_numpy.running_sum import", "from import", "not an imp"),
    "unreadable include": ("source", "  # include", "  # include it", "cannot read this include"),
    "unknown cuda": ("source", "kernels/add.cu", "kernels/sub.cu", "no cupy_kernels/sub.cu"),
    "no name": ("source", "add.cu as ADD_KERNEL", "add.cu", "cannot read this include"),
    "unknown tag": ("source", 'tags=["check"]', 'tags=["chek"]', "unknown tag 'chek'"),
    "unknown option": ("source", 'exercise="mean"', 'exercize="mean"', "unknown option 'exercize'"),
    "unquoted": ("source", 'exercise="mean"', "exercise=mean", "unknown option 'exercise=mean"),
    "title": ("source", "# %% tags", "# %% Helpers tags", "unknown option"),
    "which exercise": ("source", 'tags=["helper"]', 'tags=["exercise"]', "which exercise?"),
    "markdown exercise": ("source", "# %% [markdown]", '# %% [markdown] exercise="a"', "code cell"),
    "asked twice": ("source", 'exercise="mean"', 'exercise="add_kernel"', "already, in line 33"),
    "empty cell": ("source", "check(running_sum)\n", "", "the cell is empty"),
    "bare markdown": ("source", "# No loop is needed.", "No loop", "every line starts with `# `"),
    "bare tag": ("source", 'tags=["check"]', "tags=[check]", "unknown option 'tags=[check]'"),
    "tag that is a number": ("source", 'tags=["check"]', "tags=[1]", "unknown tag 1"),
    "tags in tags": ("source", 'tags=["check"]', 'tags=[["check"]]', "unknown option"),
    "tags without a list": ("source", 'tags=["check"]', 'tags="check"', "unknown option"),
    "bad escape": ("source", 'exercise="mean"', r'exercise="me\an"', "unknown option 'exercise="),
    "list for a name": ("source", 'exercise="mean"', 'exercise=["mean"]', "unknown option"),
    "no name at all": ("source", 'exercise="mean"', 'exercise="the mean"', "'the mean' is no id"),
    "not Python": (
        "source",
        "    return 2 * x",
        "    return 2 * * x",
        "line 17 (cell 2): not Python: invalid syntax",
    ),
    "not Python where it is included from": (
        REFERENCE,
        "START = 0\n",
        "START = = 0\n",
        "reference_numpy/running_sum.py, line 5 "
        "(included by solutions/07_running_sum.py, cell 4, exercise running_sum): not Python",
    ),
    "not Python in the student's copy alone": (
        "source",
        "    return total / count\n    ### END SOLUTION",
        "    try:\n        return total / count\n    ### END SOLUTION\n"
        "    except ZeroDivisionError:\n        return 0.0",
        "exercise mean): the student's copy is not Python",
    ),
    "null byte": ("source", "    return 2 * x", "    return 2 * '\0'", "null bytes"),
    "nothing but comments": ("source", "return 0.0", "# return 0.0", "nothing but comments"),
    "nothing but cuda comments": (
        CUDA,
        "    if (i < N) {\n        c[i] = a[i] + b[i];\n    }",
        "    // c[i] = a[i] + b[i];",
        "nothing but comments",
    ),
    "markers in a string": (
        "source",
        "        ### BEGIN SOLUTION\n        return 0.0\n        ### END SOLUTION",
        '        """\n        ### BEGIN SOLUTION\n        0\n        ### END SOLUTION\n        """',
        "the block stands inside a string",
    ),
    "cuda markers outside a string": (
        "source",
        "        ### BEGIN SOLUTION\n        return 0.0\n        ### END SOLUTION",
        "        // BEGIN SOLUTION\n        return 0.0\n        // END SOLUTION",
        "line 45 (cell 8, exercise mean): not Python",
    ),
    "empty cuda": (CUDA, None, "\n", "cupy_kernels/add.cu is empty"),
    "cuda from elsewhere": (
        "source",
        "cupy_kernels/add.cu",
        "../x/add.cu",
        "cannot read this incl",
    ),
    "before the first cell": (
        "source",
        "# ---\n\n",
        "# ---\nx = 1\n",
        "text before the first cell",
    ),
}


@pytest.mark.parametrize(("file", "old", "new", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_stops_the_build(course, capsys, file, old, new, message):
    path = getattr(course, file)
    path.write_text(new) if old is None else course.replace(old, new, path)
    assert course.run() == 1
    assert course.run("--check") == 1
    error = capsys.readouterr().err
    assert message in error
    assert ", line " in error
    assert not course.student.exists()
    assert not course.solved.exists()


def test_a_file_name_says_the_lesson(course, capsys):
    course.source.rename(course.source.with_name("running_sum.py"))
    assert course.run() == 1
    assert "call it NN_name.py" in capsys.readouterr().err


def test_two_lessons_have_two_numbers(course, capsys):
    course.source.with_name("07_other.py").write_text(course.source.read_text())
    assert course.run() == 1
    assert "are both lesson 07" in capsys.readouterr().err


def test_no_source_is_an_error(course, capsys):
    course.source.unlink()
    assert course.run("--check") == 1
    assert "no NN_name.py" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["source", "reference", "cuda"])
def test_a_file_that_is_not_utf8_is_named_with_its_line(course, capsys, file):
    path = getattr(course, file)
    lines = path.read_bytes().count(b"\n")
    path.write_bytes(path.read_bytes() + b"# caf\xe9\n")
    assert course.run() == 1
    where = f"{path.parent.name}/{path.name}, line {lines + 1}"
    assert capsys.readouterr().err == f"{where}: not UTF-8; save the file as UTF-8\n"


def test_a_byte_order_mark_changes_nothing(built, capsys):
    built.source.write_bytes(b"\xef\xbb\xbf" + built.source.read_bytes())
    assert built.run("--check") == 0


def test_a_folder_with_the_name_of_a_lesson(course, capsys):
    course.source.with_name("09_folder.py").mkdir()
    assert course.run() == 1
    assert capsys.readouterr().err == "solutions/09_folder.py: cannot be read: Is a directory\n"


@pytest.mark.parametrize("text", ["x = [", "project = 3", "[project]\nurls = []", "\0"])
def test_a_broken_pyproject(course, capsys, text):
    (course.root / "pyproject.toml").write_text(text)
    assert course.run() == 1
    assert capsys.readouterr().err.startswith("pyproject.toml, where the repository is: ")


def test_a_pyproject_without_a_project_names_no_repository(course):
    (course.root / "pyproject.toml").write_text("[tool]\n")
    assert course.run() == 0


def test_only_what_ends_a_line_of_python_ends_a_line(course):
    course.replace("    return 2 * x", '    return 2 * x, "a\u2028b\x0cc\x1dd\x85e"')
    assert course.run() == 0
    built = {}
    exec(text_of(course.student, "07-the-running-sum-helper").partition("\n")[2], built)
    assert built["twice"](1) == (2, "a\u2028b\x0cc\x1dd\x85e")


def test_a_function_is_included_where_nobody_is_asked(course):
    course.reference.write_text(course.reference.read_text() + "    return 0\n")
    course.replace(
        "# %% [markdown]\n# ## Your turn",
        "# %%\nfrom reference_numpy.running_sum import unused  # include\n\n"
        "# %% [markdown]\n# ## Your turn",
    )
    assert course.run() == 0
    assert "def unused():" in course.student.read_text()
