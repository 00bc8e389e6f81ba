"""The figures of lesson 06: true in themselves, and what the solved lesson prints."""

import json
import re
from contextlib import chdir, redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from autograder import notebook
from autograder.exercise import all_exercises
from autograder.exercises import cuda_answers
from autograder.progress_file import ProgressFile
from cupy_kernels import naive_forward, nvrtc
from reference_numpy.oracle import attention
from reference_numpy.roofline import DEVICES

COURSE = Path(__file__).parents[2]


def run(folder: Path, name: str = "solutions") -> tuple[dict, str]:
    """The cells of the notebook below `name`, run in order: their names and what they print."""
    matplotlib.use("Agg")
    cells = json.loads((COURSE / name / "06_first_cuda_kernels.ipynb").read_text())["cells"]
    names = {"display": print}
    with chdir(folder), redirect_stdout(StringIO()) as printed:  # `check` keeps its progress there
        for cell in cells:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    matplotlib.pyplot.close("all")
    notebook._passed.clear()
    return names, printed.getvalue()


@pytest.fixture(scope="module")
def lesson(tmp_path_factory) -> tuple[dict, str]:
    """The solved notebook, run once."""
    return run(tmp_path_factory.mktemp("lesson"))


@pytest.mark.parametrize("exercise", [e.id for e in all_exercises().values() if e.lesson == 6])
def test_the_lessons_cell_is_the_shipped_answer(lesson, exercise):
    names, _ = lesson
    assert names[exercise] == getattr(cuda_answers, exercise)


def test_the_launches_are_those_of_the_naive_forward_pass():
    grid = "cdiv({}, {}), cdiv(Nq, {}), batch * heads"
    rows, columns = naive_forward.ROWS, naive_forward.COLUMNS
    for kernel, across in ((cuda_answers.cuda_scores, "Nk"), (cuda_answers.cuda_weighted_sum, "d")):
        assert kernel.grid == grid.format(across, columns, rows)
        assert kernel.block == f"{columns}, {rows}"
    assert cuda_answers.cuda_softmax.block == str(naive_forward.SOFTMAX_THREADS)


def test_who_is_who_as_worked_by_hand(lesson):
    _, printed = lesson
    assert "[  0   1   2   3 100 101 102 103 200 201]" in printed


def test_sectors_a_request_by_stride(lesson):
    names, printed = lesson
    for stride, sectors in ((1, 4), (2, 8), (4, 16), (8, 32), (16, 32), (3, 12)):
        lanes = np.arange(32) * stride
        assert len(np.unique(lanes // 8)) == sectors
        x = names["strided"](stride).per_array()["x"]
        assert x.load_sectors == sectors * x.load_requests == 4 * sectors
    assert re.search(r"^ +8 +128 +32 +512 +4096$", printed, re.MULTILINE)


def test_wavefronts_of_a_column_by_row_length(lesson):
    _, printed = lesson
    for width, wavefronts in ((32, 32), (33, 1), (34, 2), (36, 4), (40, 8), (48, 16)):
        banks = np.bincount(np.arange(32) * width % 32)
        assert banks.max() == wavefronts
        assert re.search(rf"^ +{width} +{wavefronts}   \[", printed, re.MULTILINE)


def test_the_race_is_caught_and_the_barrier_puts_it_right(lesson):
    _, printed = lesson
    assert "race in kernel neighbour: read of x+4 after a write by another thread" in printed
    assert "kernel.cu:5: y[threadIdx.x] = x[(threadIdx.x + 1) % 64];" in printed
    assert "at kernel.cu:4: x[threadIdx.x] = threadIdx.x;" in printed
    assert "[1. 2. 3. 4.] ... [61. 62. 63.  0.]" in printed


def test_the_report_on_the_first_try_names_line_and_thread(lesson):
    _, printed = lesson
    assert "global read of 4 bytes at x+4012 (4,012 bytes, element 1003 of 1003)" in printed
    assert "at vector_add.cu:4: z[i] = x[i] + y[i];" in printed


def test_the_three_kernels_are_attention(lesson):
    names, printed = lesson
    q, k, v = names["normal"](2, 2, 80, 32)
    O, LSE, _ = names["naive_attention"](q, k, v, causal=True)
    truth = attention(q, k, v, causal=True)
    assert np.abs(O - truth[0]).max() < 2e-6
    assert np.abs(LSE - truth[1]).max() < 2e-6
    assert f"O    differs from float64 by {np.abs(O - truth[0]).max():.1e}" in printed


def test_the_line_that_reads_K_is_the_hottest_of_the_scores(lesson):
    names, _ = lesson
    *_, traffic = names["naive_attention"](*names["normal"](1, 1, 128, 64))
    scores = traffic.kernels[0]
    hottest = max(scores.lines, key=lambda line: line.load_sectors + line.store_sectors)
    assert "k[key_row * d + c]" in scores.source.splitlines()[hottest.line - 1]
    k = traffic.per_array()["k"]
    assert 32 * k.load_sectors == 32 << 20
    assert k.size_bytes == 32 << 10
    assert "k[key_row * d + c]" in traffic._repr_html_()


@pytest.mark.parametrize("what", ["S, read and written", "P, written", "P, read", "K, read"])
def test_N2_traffic_four_times_for_twice_the_N(lesson, what):
    names, printed = lesson
    row = [names["moved"][N][what] for N in (64, 128, 256, 512)]
    assert [b / a for a, b in pairwise(row)] == [4, 4, 4]
    assert f"{what} 2.00" in printed


def test_S_alone_moves_4N2_floats_and_O_grows_with_N(lesson):
    names, printed = lesson
    for N in (64, 128, 256, 512):
        assert names["moved"][N]["S, read and written"] == 4 * 4 * N * N
        assert names["moved"][N]["P, written"] == 4 * N * N
        assert names["moved"][N]["P, read"] == 32 * N * N * 64 // 32
        assert names["moved"][N]["K, read"] == 32 * N * N * 64
        assert names["moved"][N]["O, written"] == 4 * N * 64
    assert "O, written 1.00" in printed


def test_least_times_at_the_bandwidth_of_an_H100(lesson):
    _, printed = lesson
    seconds = 4 * (4 * 4096 * 64 + 6 * 4096**2) / DEVICES["H100"].hbm_bytes_per_s
    assert f"N =  4096: three kernels {1e6 * seconds:>7,.1f} µs" in printed


@pytest.mark.parametrize("name", ["solutions", "lessons"])
def test_without_a_compiler_cells_say_what_to_do_and_shipped_kernels_run(
    name, tmp_path, monkeypatch
):
    monkeypatch.setattr(nvrtc, "find_library", lambda: None)
    names, printed = run(tmp_path, name)
    assert printed.count("NVRTC is not installed (Linux, Windows: pip install") == 7
    assert names["moved"][512]["S, read and written"] == 4 * 4 * 512 * 512
    outcome = "PASS" if name == "solutions" else "NOT WRITTEN"
    for exercise in all_exercises().values():
        if exercise.lesson == 6:
            assert ProgressFile(tmp_path).entry(exercise.id).outcome == outcome
