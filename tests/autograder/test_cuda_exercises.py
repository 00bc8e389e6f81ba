"""CUDA exercises from hand-in to report: in the notebook, and as a submission."""

import json
from dataclasses import replace

import numpy as np
import pytest

from autograder import check, grade_notebook
from autograder.exercise import Tier, all_exercises
from autograder.exercises.cuda_answers import cuda_add, cuda_row_sum, cuda_scores
from autograder.exercises.cuda_cases import NEVER_STORED, compulsory, never_stored, once
from autograder.grading import grade_function
from autograder.report import Report
from autograder.result import Outcome
from cupy_kernels import nvrtc
from lessons.include import expand_includes
from lessons.markers import student_text
from lessons.source import Cell, Line
from tests.autograder.conftest import code_cell

CUDA = [exercise for exercise in all_exercises().values() if exercise.kernel]


def changed(kernel, old, new):
    assert old in kernel.source
    return replace(kernel, source=kernel.source.replace(old, new))


def report(kernel, exercise="cuda_add"):
    return str(Report(grade_function(kernel, exercise)))


def cell_text(kernel, name="cuda_add"):
    launch = f'grid="{kernel.grid}", block="{kernel.block}"'
    return f'SOURCE = r"""{kernel.source}"""\n{name} = CudaKernel(SOURCE, {launch})\n'


# --- in the notebook


@pytest.mark.parametrize("exercise", CUDA, ids=lambda exercise: exercise.id)
def test_the_shipped_answer_passes_the_full_tier_with_full_points(exercise):
    result = grade_function(exercise.shipped_answer(), exercise.id, Tier.FULL, seed=5)
    assert result.outcome is Outcome.PASS
    assert result.earned == result.possible
    assert result.traffic


@pytest.mark.parametrize("exercise", CUDA, ids=lambda exercise: exercise.id)
def test_the_stub_that_students_get_is_not_written(exercise):
    answer = exercise.shipped_answer()
    marker = Line("", "t.py", 1)
    include = Line(f"# include cupy_kernels/{exercise.kernel}.cu as SOURCE", "t.py", 1)
    cell = Cell(1, marker, False, ("exercise",), exercise.id, (include,))
    names = {}
    exec(student_text(expand_includes(cell, nvrtc.KERNEL_DIR.parent)), names)
    assert names["SOURCE"].count("YOUR CODE HERE") >= 1
    result = grade_function(replace(answer, source=names["SOURCE"]), exercise.id)
    assert result.outcome is Outcome.NOT_WRITTEN


def test_check_finds_the_exercise_by_the_kernel_it_asks_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "PASS  cuda_add" in str(check(cuda_add))
    with pytest.raises(KeyError, match="say which exercise"):
        check(changed(cuda_add, "vector_add", "my_add"))


def test_the_quick_tier_takes_three_launches_at_most():
    for exercise in CUDA:
        runs = exercise.examine.keywords["runs"]
        assert len(list(runs(Tier.QUICK, 0))) <= 3
        assert len(list(runs(Tier.FULL, 0))) > len(list(runs(Tier.QUICK, 0)))


def test_a_compile_error_shows_the_students_own_line_and_a_caret():
    text = report(changed(cuda_add, "x[i] + y[i]", "x[i] + w[i]"))
    assert 'vector_add.cu(15): error: identifier "w" is undefined' in text
    assert "      if (i < n) z[i] = x[i] + w[i];\n" in text
    assert " " * 33 + "^" in text


def test_a_fault_of_the_simulator_says_where_who_and_why():
    text = report(changed(cuda_row_sum, "    __syncthreads();", "    //"), "cuda_row_sum")
    assert "race in kernel row_sum: read of per_warp+4" in text
    assert "at row_sum.cu:38: for (int w = 0" in text
    assert "block (0, 0, 0), thread (0, 0, 0)" in text
    assert "written by: thread (32, 0, 0)" in text
    assert "likely cause: a __syncthreads" in text
    assert "race at row_sum.cu:38" in text
    assert "as above" in text


def test_an_endless_loop_is_ended_and_ends_the_exercise(monkeypatch):
    monkeypatch.setitem(
        __import__("autograder.exercises.cuda_cases", fromlist=["x"]).SECONDS, Tier.QUICK, 0.3
    )
    result = grade_function(changed(cuda_add, "if (i < n)", "while (1) if (i < n)"), "cuda_add")
    assert result.message == "a launch did not end; nothing more was tried"
    assert "endless loop" in result.findings[0].cause
    assert (result.earned.total, len(result.findings)) == (0, 1)


def test_what_a_kernel_prints_is_not_shown(capsys):
    kernel = changed(cuda_add, "if (i < n)", 'if (i == 0) printf("hello\\n"); if (i < n)')
    assert grade_function(kernel, "cuda_add").outcome is Outcome.PASS
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (cuda_add.source, "this is a str: hand in CudaKernel"),
        (changed(cuda_add, "vector_add", "add"), "the kernel is called vector_add, and yours add"),
        (changed(cuda_add, "int n)", "int n, int m)"), "and yours (x, y, z, n, m): keep them"),
        (replace(cuda_add, grid="n / 256"), "grid: n / 256: / gives a fraction"),
        (replace(cuda_add, grid="len(x)"), "grid: len(x) is not arithmetic on sizes"),
        (replace(cuda_add, block="2048"), "block.x is 2048: the limit is 1,024"),
        (replace(cuda_add, block="32, 32, 1, 1"), "block has 4 dimensions"),
        (replace(cuda_add, source="int x;"), "the source holds no kernel"),
    ],
)
def test_what_cannot_be_launched_is_said_in_one_line(kernel, words):
    text = report(kernel)
    assert text.startswith("FAIL  cuda_add · 0 of 10 points")
    assert words in text


@pytest.mark.parametrize(
    "include",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        '#include "../../secret.h"',
        "#include <../secret.h>",
        "# /* */ include FILE",
        '#inc\\\nlude "/etc/passwd"',
        '%:include "/etc/passwd"',
        '#include "grades.json"',
        '# /*\n*/ include "/etc/passwd"',
        '/* // */ #include "/etc/passwd"',
        '/*\n// */ #include "/etc/passwd"',
        'const char* a = "/*";\n#include "/etc/passwd"\nconst char* b = "*/";',
        '#if __has_include("/etc/passwd")\n#endif',
        '#include_next "/etc/passwd"',
        '#inc\\ \nlude "/etc/passwd"',
        '// \\ \n#include "/etc/passwd"',
    ],
)
def test_headers_of_this_machine_are_refused(include):
    text = report(replace(cuda_add, source=f"{include}\n{cuda_add.source}"))
    assert "include the course's headers" in text


def test_headers_of_cuda_and_of_the_course_are_welcome():
    headers = '#include <cuda_fp16.h>\n#include "warp_reduce.cuh"  // includes\n// included\n'
    kernel = replace(cuda_add, source=headers + cuda_add.source)
    assert grade_function(kernel, "cuda_add").outcome is Outcome.PASS


MACROS = "#define A0 y[0] += 1.0f;\n" + "".join(
    f"#define A{i} {10 * f'A{i - 1} '}\n" for i in range(1, 8)
)


def test_a_source_that_keeps_the_compiler_busy_is_given_up_when_grading(monkeypatch):
    monkeypatch.setattr("autograder.exercises.cuda_launch.COMPILE_SECONDS", 1)
    kernel = changed(cuda_add, "if (i < n)", "A7 if (i < n)")
    kernel = replace(
        kernel, source=MACROS + kernel.source.replace("const float* __r", "float* __r")
    )
    result = grade_function(kernel, "cuda_add", Tier.FULL)
    assert result.message == "the compiler was not done after 1 s"


def test_large_arrays_of_a_thread_are_refused():
    loop = "float a[9999]; for (int t = 0; t < n; ++t) a[t * i % 9999] = t; z[0] = a[n]; if (i < n)"
    text = report(changed(cuda_add, "if (i < n)", loop))
    assert "each thread has 39,996 bytes of local arrays; at most 16,384 are allowed" in text


def test_without_nvrtc_the_shipped_answer_is_judged_and_others_are_told_why(monkeypatch):
    monkeypatch.setattr(nvrtc, "find_library", lambda: None)
    assert grade_function(cuda_scores, "cuda_scores").outcome is Outcome.PASS
    result = grade_function(changed(cuda_scores, "score +=", "score  +="), "cuda_scores")
    assert "NVRTC is not installed" in result.message


TILED_SCORES = """\
#define TILE 32
extern "C" __global__ void naive_scores(
    const float* q, const float* k, float* s,
    int heads, int kv_heads, int Nq, int Nk, int d, float scale, int causal) {
    __shared__ float keys[TILE][TILE + 1];
    const int first = blockIdx.x * TILE, j = first + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    const int head = blockIdx.z % heads, batch = blockIdx.z / heads;
    const int kv_head = head / (heads / kv_heads);
    const float* K = k + ((long long)batch * kv_heads + kv_head) * Nk * d;
    const float* Q = q + ((long long)blockIdx.z * Nq + i) * d;
    float score = 0.0f;
    for (int left = 0; left < d; left += TILE) {
        const int width = min(TILE, d - left);
        for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
            const bool there = first + r < Nk && threadIdx.x < width;
            keys[r][threadIdx.x] = there ? K[(first + r) * d + left + threadIdx.x] : 0.0f;
        }
        __syncthreads();
        for (int c = 0; c < width && i < Nq; ++c) score += Q[left + c] * keys[threadIdx.x][c];
        __syncthreads();
    }
    if (i >= Nq || j >= Nk) return;
    const bool visible = !causal || j <= i + Nk - Nq;
    s[((long long)blockIdx.z * Nq + i) * Nk + j] = visible ? scale * score : -INFINITY;
}
"""


def test_a_better_kernel_than_the_shipped_one_passes_and_moves_less():
    result = grade_function(replace(cuda_scores, source=TILED_SCORES), "cuda_scores", Tier.FULL)
    assert result.outcome is Outcome.PASS
    for row in result.traffic:
        if (row.array, row.fixture) == ("k", "normal"):
            assert row.lower < row.measured < row.upper / 60


# --- as a submission


def test_a_submission_is_graded_like_the_notebook(notebook):
    wrong = changed(cuda_scores, "? scale * score", "? score")
    cells = [code_cell(cell_text(cuda_add), "cuda_add")]
    cells += [code_cell(cell_text(wrong, "cuda_scores"), "cuda_scores")]
    add, scores = grade_notebook(notebook(*cells, lesson=None, name="n.ipynb"), tier=Tier.QUICK)
    assert (add.exercise, add.outcome, add.earned.total) == ("cuda_add", Outcome.PASS, 10)
    assert (scores.exercise, scores.outcome) == ("cuda_scores", Outcome.FAIL)
    assert "not multiplied by scale" in scores.findings[0].cause


def test_without_metadata_the_assignment_names_the_exercise(notebook):
    path = notebook(code_cell(cell_text(cuda_add)), lesson=None, name="n.ipynb")
    (add,) = grade_notebook(path, tier=Tier.QUICK)
    assert (add.exercise, add.outcome) == ("cuda_add", Outcome.PASS)


def test_a_broken_cell_without_metadata_is_still_found(notebook):
    path = notebook(code_cell("cuda_add = CudaKernel(("), lesson=None, name="n.ipynb")
    (add,) = grade_notebook(path, tier=Tier.QUICK)
    assert (add.exercise, add.outcome) == ("cuda_add", Outcome.FAIL)
    assert "syntax error" in add.message


def test_no_python_of_the_student_runs_where_kernels_run(notebook, tmp_path):
    escaped = tmp_path / "escaped"
    clever = (
        "class Clever(str):\n"
        "    def __format__(self, _): open(PATH, 'w')\n"
        "    def replace(self, *_): open(PATH, 'w')\n"
        f"PATH = {json.dumps(str(escaped))}\n"
    )
    text = clever + cell_text(cuda_add).replace("CudaKernel(SOURCE", "CudaKernel(Clever(SOURCE)")
    path = notebook(code_cell(text, "cuda_add"), lesson=None, name="n.ipynb")
    (add,) = grade_notebook(path, tier=Tier.QUICK)
    assert add.outcome is Outcome.PASS
    assert not escaped.exists()


# --- the closed forms


def test_sectors_of_rows_moved_once():
    assert once(1, 1024) == compulsory(1024) == 4096
    assert once(3, 64) == 3 * 256
    assert compulsory(9) == 64
    # 33 floats a row: requests of 32 and of 1, one sector more allowed for each of the four.
    assert once(2, 33) == 32 * ((4 + 1) + (5 + 1) + 4)


def test_an_element_that_was_never_stored_is_known_by_its_bits():
    untouched = never_stored((3,))
    assert np.isnan(untouched).all()
    assert (untouched.view(np.uint32) == NEVER_STORED).all()
    with np.errstate(invalid="ignore"):
        computed = np.float32(0) * np.float32(np.inf)
    assert np.float32(computed).view(np.uint32) != NEVER_STORED
