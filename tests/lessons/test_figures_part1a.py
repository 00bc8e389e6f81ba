"""The figures of lessons 00 to 02: true in themselves, and what the lessons print."""

import os
import re
import runpy
from functools import reduce
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

from reference_numpy import first_kernels, io_complexity
from reference_numpy.flops import FORWARD_MATMULS, matmul_flops
from reference_numpy.io_complexity import Problem
from reference_numpy.machine import Machine
from reference_numpy.online_softmax import merge, online_softmax
from reference_numpy.roofline import DEVICES, is_memory_bound, least_time
from reference_numpy.standard_backward import standard_backward
from reference_numpy.three_kernels import scores, softmax_rows, three_kernels, weighted_sum
from reference_numpy.tiling import cdiv

SOLUTIONS = Path(__file__).parents[2] / "solutions"


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """Runs a solved lesson, once, as plain Python: its names and what it prints."""
    done = {}

    def run(name: str) -> SimpleNamespace:
        if name not in done:
            done[name] = _run(name, tmp_path_factory.mktemp(name))
        return done[name]

    return run


def _run(name: str, folder: Path) -> SimpleNamespace:
    printed = folder / "printed.txt"
    before = Path.cwd()
    matplotlib.use("Agg")
    os.chdir(folder)  # `check` keeps its progress in the current folder
    try:
        with pytest.MonkeyPatch.context() as patch, printed.open("w", encoding="utf-8") as out:
            patch.setattr("sys.stdout", out)
            names = runpy.run_path(str(SOLUTIONS / f"{name}.py"))
    finally:
        os.chdir(before)
        matplotlib.pyplot.close("all")
    return SimpleNamespace(**names, printed=printed.read_text(encoding="utf-8"))


# Lesson 00


def test_the_a100_has_the_memories_that_the_paper_draws():
    for name, gigabytes in (("A100 40GB", 40), ("A100 80GB", 80)):
        gpu = DEVICES[name]
        assert gpu.hbm_bytes == gigabytes * 1e9
        assert 1.5e12 <= gpu.hbm_bytes_per_s <= 2.1e12
        assert (gpu.sms, gpu.sram_bytes_per_sm) == (108, 192 * 1024)
        assert gpu.sram_bytes_per_s == pytest.approx(19e12, rel=0.03)


@pytest.mark.parametrize(
    ("family", "flops_a_clock"), [("A100", 2048), ("H100", 4096), ("H200", 4096), ("B200", 8192)]
)
def test_the_clock_is_the_one_at_which_the_peak_is_stated(family, flops_a_clock):
    for gpu in DEVICES.values():
        if gpu.name.startswith(family):
            assert gpu.sms * flops_a_clock * gpu.clock_hz == pytest.approx(gpu.peak_flops, rel=0.01)


def test_the_bytes_of_an_addition_take_1800_times_as_long_as_its_arithmetic():
    gpu, n = DEVICES["A100 80GB"], 100e6
    assert least_time(n, 12 * n, gpu) / (n / gpu.peak_flops) == pytest.approx(1836, abs=1)


def test_the_plain_additions_of_an_a100_are_a_thirty_second_of_its_peak(lesson):
    names = lesson("00_the_machine")
    assert names.lanes == 6912
    assert names.a100.peak_flops / (names.lanes * names.a100.clock_hz) == pytest.approx(32, 0.01)
    assert "6912 lanes: 9.7 trillion additions a second" in names.printed
    assert "arithmetic:    10.3 µs; the bytes still take 57 times as long" in names.printed


def test_scores_of_short_heads_are_memory_bound_on_every_gpu(lesson):
    names = lesson("00_the_machine")
    _, flops, nbytes = next(p for p in names.textbook if p[0].startswith("S = Q"))
    assert (flops, nbytes) == (matmul_flops(4096, 64, 1), 2 * (4096**2 + 2 * 4096 * 64))
    assert all(is_memory_bound(flops, nbytes, gpu) for gpu in DEVICES.values())


@pytest.mark.parametrize("N", [1, 5, 97, 256, 1000])
@pytest.mark.parametrize("n", [16, 40, 130])
def test_first_kernels_move_the_predicted_bytes(N, n):
    for name, predicted in first_kernels.predicted_bytes(N, n).items():
        machine = Machine()
        names = {"elementwise_add": "XYZ", "softmax_one_kernel": "XY"}.get(name, "XMLY")
        arrays = [machine.hbm(a, np.ones(N if a in "ML" else (N, n), np.float32)) for a in names]
        getattr(first_kernels, name)(machine, *arrays, B=32)
        assert machine.traffic.total == predicted


def test_lesson_00_prints_prediction_and_meter_in_agreement(lesson):
    rows = re.findall(r"^(\w+) +([\d,]+) +([\d,]+)$", lesson("00_the_machine").printed, re.M)
    assert [row[0] for row in rows] == list(first_kernels.predicted_bytes(1, 1))
    assert all(predicted == metered for _, predicted, metered in rows)


# Lesson 01


def hbm(machine: Machine, N: int, d: int) -> dict:
    """Q, K, V, dO with numbers in them, the rest empty."""
    rng = np.random.default_rng(0)
    square, tall = ("S", "P", "dP", "dS"), ("O", "dQ", "dK", "dV")
    arrays = {
        x: machine.hbm(x, rng.standard_normal((N, d)).astype(np.float32))
        for x in ("Q", "K", "V", "dO")
    }
    arrays |= {x: machine.empty(x, (N, N)) for x in square}
    return arrays | {x: machine.empty(x, (N, d)) for x in tall}


SIZES = pytest.mark.parametrize(("N", "d"), [(N, d) for N in (5, 97, 256) for d in (16, 40, 128)])
ROOMY = 1 << 20


def tile(N: int) -> int:
    return max(1, N // 3)  # at least three tiles, the last one ragged


@SIZES
def test_the_three_kernels_move_4Nd_plus_4N2_one_by_one(N, d):
    machine = Machine(ROOMY)
    a, B = hbm(machine, N, d), tile(N)
    moved = []
    for kernel in (
        lambda: scores(machine, a["Q"], a["K"], a["S"], Br=B, Bc=B, scale=d**-0.5),
        lambda: softmax_rows(machine, a["S"], a["P"], Br=B),
        lambda: weighted_sum(machine, a["P"], a["V"], a["O"], Br=B, Bc=B),
    ):
        before = machine.traffic.total
        kernel()
        moved.append((machine.traffic.total - before) // 4)
    assert moved == [2 * N * d + N**2, 2 * N**2, N**2 + 2 * N * d]
    assert sum(moved) == 4 * N * d + 4 * N**2


@SIZES
def test_without_room_k_and_v_are_read_once_per_tile_of_queries(N, d):
    machine, B = Machine(2 * 4 * N * d - 1), min(tile(N), d)  # one byte short of room for K
    a = hbm(machine, N, d)
    three_kernels(machine, *(a[x] for x in "QKVSPO"), Br=B, Bc=B, scale=d**-0.5)
    reread = 2 * (cdiv(N, B) - 1) * N * d
    assert reread > 0
    assert machine.traffic.total == 4 * (4 * N * d + 4 * N**2 + reread)


@SIZES
def test_the_standard_backward_moves_7N2_plus_8Nd_and_both_passes_11N2_plus_12Nd(N, d):
    machine = Machine(ROOMY)
    a, tiles = hbm(machine, N, d), {"Br": tile(N), "Bc": tile(N), "scale": d**-0.5}
    three_kernels(machine, *(a[x] for x in "QKVSPO"), **tiles)
    forward = machine.traffic.total
    given = ("Q", "K", "V", "P", "dO", "dP", "dS", "dQ", "dK", "dV")
    standard_backward(machine, *(a[x] for x in given), **tiles)
    assert machine.traffic.total - forward == 4 * (7 * N**2 + 8 * N * d)
    assert machine.traffic.total == 4 * (11 * N**2 + 12 * N * d)


def test_lesson_01_prints_meter_and_closed_forms_in_agreement(lesson):
    names = lesson("01_three_kernels")
    N, d, Tr = 256, 64, 8
    closed = {
        r"4Nd \+ 4N²: +(\d+)": 4 * N * d + 4 * N**2,
        r"re-read: +(\d+) with Tr = 8": 4 * N * d + 4 * N**2 + 2 * (Tr - 1) * N * d,
        r"backward: +(\d+) elements": 7 * N**2 + 8 * N * d,
        r"with it: +(\d+) elements": 11 * N**2 + 12 * N * d,
    }
    for pattern, figure in closed.items():
        assert int(re.search(pattern, names.printed)[1]) == figure
    metered = [int(n) for n in re.findall(r"metered: +(\d+) elements", names.printed)]
    assert metered == list(closed.values())[:2]
    assert names.measured == [4 * (4 * n * 64 + 4 * n * n) for n in names.lengths]


def test_without_the_maximum_normal_data_pass_and_rising_fails(lesson):
    findings = lesson("01_three_kernels").report.result.findings
    verdict = {finding.fixture: finding.passed for finding in findings}
    assert verdict["normal"]
    assert not verdict["rising"]
    assert not verdict["deep_negative"]


def test_tensor_cores_wait_four_fifths_of_the_time_on_an_a100():
    gpu = DEVICES["A100 80GB"]
    for N in (1024, 2048, 4096, 8192):
        arithmetic = matmul_flops(N, 64, FORWARD_MATMULS)
        nbytes = 2 * io_complexity.total(io_complexity.three_kernels(Problem(N, N, 64, 64, 64)))
        share = arithmetic / gpu.peak_flops / least_time(arithmetic, nbytes, gpu)
        assert share == pytest.approx(0.2, abs=0.01)


# Lesson 02


def test_the_hand_example_by_the_functions_of_the_lesson():
    m, l, p = online_softmax([np.array([[1, 3]], np.float32)])
    assert (m[0], round(float(l[0]), 4)) == (3, 1.1353)
    blocks = [np.array([[1, 3]], np.float32), np.array([[2, 5]], np.float32)]
    m, l, p = online_softmax(blocks)
    assert (m[0], round(float(l[0]), 4)) == (5, 1.2034)
    in_one_go = np.exp([1 - 5, 3 - 5, 2 - 5, 0.0])
    assert np.round(in_one_go, 4).tolist() == [0.0183, 0.1353, 0.0498, 1]
    np.testing.assert_allclose(np.hstack(p)[0], in_one_go / in_one_go.sum(), rtol=1e-6)


@pytest.mark.parametrize(
    "line",
    [
        "m = 3, l = 1.1353",
        "factor e^(3−5) = 0.1353",
        "the old sum becomes 0.1353 · 1.1353 = 0.1537",
        "l = 0.1537 + 0.0498 + 1 = 1.2034",
        "in one go: 0.0183 + 0.1353 + 0.0498 + 1.0000 = 1.2034",
        "online_softmax: m = 5, l = 1.2034",
        "merge:          m = 5, l = 1.2034",
    ],
)
def test_lesson_02_prints_the_hand_example(lesson, line):
    assert line in lesson("02_online_softmax").printed


def test_lesson_02_prints_the_two_block_form_equal_to_the_one_shot_result(lesson):
    printed = lesson("02_online_softmax").printed
    first, second, one_go = (
        re.search(rf"^{label}: +\[ *(\S+) +(\S+)\]", printed, re.M).groups()
        for label in ("after tile 1", "after tile 2", "in one go")
    )
    assert second == one_go
    assert first != one_go  # the first denominator was wrong


def test_the_two_block_form_on_random_blocks():
    rng = np.random.default_rng(0)
    S, V = rng.standard_normal((50, 40)), rng.standard_normal((40, 8))
    A1, A2 = np.exp(S[:, :13]), np.exp(S[:, 13:])
    l1 = A1.sum(axis=1, keepdims=True)
    l2 = l1 + A2.sum(axis=1, keepdims=True)
    O2 = (l1 / l2) * (A1 @ V[:13] / l1) + A2 @ V[13:] / l2
    A = np.exp(S)
    np.testing.assert_allclose(O2, A @ V / A.sum(axis=1, keepdims=True), rtol=1e-11, atol=1e-13)


def test_merge_is_associative_and_commutative():
    rng = np.random.default_rng(0)
    S, V = (rng.standard_normal(s).astype(np.float32) for s in ((8, 90), (90, 4)))

    def state(cols):
        m = S[:, cols].max(axis=1)
        p = np.exp(S[:, cols] - m[:, None])
        return m, p.sum(axis=1), p @ V[cols]

    parts = [state(slice(i, i + 30)) for i in (0, 30, 60)]
    a, b, c = parts
    for other in (merge(a, merge(b, c)), merge(c, merge(b, a)), merge(merge(c, a), b)):
        for got, want in zip(other, reduce(merge, parts), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)


def test_each_killer_catches_what_the_other_lets_pass(lesson):
    names = lesson("02_online_softmax")
    lost = {
        (shift, name)
        for shift, of in names.SHIFTS.items()
        for name, row in names.KILLERS.items()
        if "NaN" in names.fate(row, of(row))
    }
    assert lost == {
        ("none", "rising"),
        ("none", "deep negative"),
        ("first tile's maximum", "rising"),
        ("maximum, started at 0", "deep negative"),
    }


def test_online_softmax_reads_a_row_that_does_not_fit_twice(lesson):
    names = lesson("02_online_softmax")
    assert names.X.nbytes == 4 * names.machine.sram.capacity
    assert names.reads == 2
    assert names.machine.traffic["Y"].written == names.Y.nbytes


def test_a_new_maximum_comes_with_probability_one_over_j(lesson):
    names = lesson("02_online_softmax")
    np.testing.assert_allclose(names.moves, 1 / names.j, atol=0.015)


def test_the_widget_and_the_function_agree_on_the_row(lesson):
    printed = lesson("02_online_softmax").printed
    ours, shown = (
        re.search(rf"^{who}: +(m = .*)$", printed, re.M)[1]
        for who in ("your function", "the widget")
    )
    assert ours == shown
