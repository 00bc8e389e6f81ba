"""The figures of lessons 03 to 05: true in themselves, and what the lessons print."""

import runpy
from contextlib import chdir, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from autograder.exactness import GRADIENT_FACTOR, Budget
from reference_numpy import flops, io_complexity
from reference_numpy.flash1_forward import flash1_forward, paper_tile_sizes
from reference_numpy.flash2_forward import flash2_forward
from reference_numpy.flash_backward import flash_backward
from reference_numpy.io_complexity import Problem, total
from reference_numpy.machine import Machine
from reference_numpy.oracle import (
    EPS_FP32,
    attention,
    attention_gradients,
    gradient_floors,
    naive_backward,
)
from reference_numpy.standard_backward import standard_backward
from reference_numpy.three_kernels import three_kernels
from reference_numpy.tiling import cdiv
from reference_numpy.warp_split import shared_memory_elements

SOLUTIONS = Path(__file__).parents[2] / "solutions"


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    """Runs a solved lesson, once, as plain Python: its names and what it prints."""
    matplotlib.use("Agg")

    @cache
    def run(name: str) -> tuple[dict, str]:
        # `check` keeps its progress in the current folder
        with chdir(tmp_path_factory.mktemp(name)), redirect_stdout(StringIO()) as printed:
            names = runpy.run_path(str(SOLUTIONS / f"{name}.py"))
        matplotlib.pyplot.close("all")
        return names, printed.getvalue()

    return run


class Run:
    """A machine with random Q, K, V, dO in HBM and room for the rest; `squares`: N×N arrays too."""

    def __init__(
        self, p: Problem, *, sram_bytes=1 << 20, squares=False, dtype=np.float32, **dtypes
    ):
        self.p, self.machine = p, Machine(sram_bytes)
        rng, q, k = np.random.default_rng(p.Nq), (p.Nq, p.d), (p.Nk, p.d)
        shapes = {"Q": q, "K": k, "V": k, "dO": q, "O": q, "dQ": q, "dK": k, "dV": k}
        shapes |= dict.fromkeys(("S", "P", "dP", "dS"), (p.Nq, p.Nk)) if squares else {}
        statistics = dict.fromkeys(("l", "m", "LSE", "D"), np.float32)
        dtypes = dict.fromkeys(shapes, dtype) | statistics | dtypes
        shapes |= dict.fromkeys(statistics, (p.Nq,))
        self.hbm = {}
        for name, shape in shapes.items():
            given = name in ("Q", "K", "V", "dO")
            data = rng.standard_normal(shape) if given else np.full(shape, np.nan)
            self.hbm[name] = self.machine.hbm(name, data.astype(dtypes[name]))

    def of(self, kernel, names: str, **keywords) -> Machine:
        p = self.p
        tensors = [self.hbm[name] for name in names.split()]
        kernel(self.machine, *tensors, Br=p.Br, Bc=p.Bc, scale=p.d**-0.5, **keywords)
        return self.machine

    def flash1(self) -> Machine:
        return self.of(flash1_forward, "Q K V O l m LSE", causal=self.p.causal)

    def flash2(self) -> Machine:
        return self.of(flash2_forward, "Q K V O LSE", causal=self.p.causal)

    def backward(self) -> Machine:
        return self.of(flash_backward, "Q K V O dO LSE D dQ dK dV", causal=self.p.causal)


# Lesson 03


def test_the_tiny_example_of_lesson_03_gives_the_numbers_worked_by_hand(lesson):
    names, printed = lesson("03_flash1_forward")
    Q, K, V = names["tiny_Q"], names["tiny_K"], names["tiny_V"]
    run = Run(Problem(4, 4, 2, 2, 2))
    machine = Machine(256)
    arrays = [machine.hbm(n, x) for n, x in zip("QKV", (Q, K, V), strict=True)]
    arrays += [machine.empty("O", (4, 2)), *(machine.empty(n, (4,)) for n in ("l", "m", "LSE"))]
    flash1_forward(machine, *arrays, Br=2, Bc=2, scale=1.0, causal=False)
    assert machine.to_host("O")[0].round(4).tolist() == pytest.approx([1.7185, 0.1538], abs=1e-6)
    assert machine.to_host("l")[0] == pytest.approx(1.2034, abs=5e-5)
    assert machine.to_host("LSE")[0] == pytest.approx(5.1852, abs=5e-5)
    assert "tile by tile [1.7185 0.1538]" in printed
    assert "in one go    [1.7185 0.1538]" in printed
    assert "l    = 0.1537 + 1.0000 · 1.0498 = 1.2034" in printed
    assert "LSE = 5 + ln 1.2034 = 5.1852, in one go 5.1852" in printed
    assert run.flash1().traffic.total == 4 * total(io_complexity.flash1_forward(run.p))


N, D = 256, 32
SIZES = [1024 * 2**i for i in range(6)]


@pytest.fixture(scope="module")
def sweep() -> dict[int, int]:
    """Metered bytes of FlashAttention-1 for each SRAM size M, with the paper's tiles."""
    measured = {}
    for M in SIZES:
        p = Problem(N, N, D, *paper_tile_sizes(M, D))
        measured[M] = Run(p, sram_bytes=4 * M * 3 // 2).flash1().traffic.total
    return measured


def test_metered_bytes_equal_the_closed_form_over_the_sweep(sweep, lesson):
    _, printed = lesson("03_flash1_forward")
    for M, measured in sweep.items():
        form = 4 * total(io_complexity.flash1_forward(Problem(N, N, D, *paper_tile_sizes(M, D))))
        assert measured == form
        assert f"{measured:>11,} bytes metered, {form:>11,} in closed form" in printed


def test_metered_bytes_fall_like_N2d2_over_M(sweep):
    for M, measured in sweep.items():
        if cdiv(N, paper_tile_sizes(M, D)[1]) >= 4:
            assert 1 < measured / (4 * 12 * N**2 * D**2 / M) < 1.15
    halvings = [sweep[M] / sweep[2 * M] for M in SIZES[:3]]
    assert halvings == pytest.approx([2, 2, 2], rel=0.05)


def test_the_crossing_with_the_three_kernels_is_near_3d2_whatever_N_is(sweep):
    naive = 4 * (4 * N * D + 4 * N * N)
    assert sweep[2048] > naive > sweep[4096]
    for n, d in ((512, 32), (2048, 32), (2048, 64)):
        sizes = range(5 * d * d // 2, 4 * d * d, 8 * d)
        problems = ((M, Problem(n, n, d, *paper_tile_sizes(M, d))) for M in sizes)
        wins = (
            M for M, p in problems if total(io_complexity.flash1_forward(p)) < 4 * n * d + 4 * n * n
        )
        assert next(wins) == pytest.approx(3 * d * d, rel=0.1)


def test_the_tiles_that_share_the_sram_fit_into_one_and_a_half_of_it():
    for M in SIZES:
        p = Problem(N, N, D, *paper_tile_sizes(M, D))
        machine = Run(p, sram_bytes=4 * M * 3 // 2).flash1()
        assert machine.sram.peak <= machine.sram.capacity
    with pytest.raises(MemoryError, match="bytes of SRAM"):
        Run(Problem(N, N, D, 8, 8), sram_bytes=4 * 512).flash1()


def test_flash1_leaves_the_memory_bound_side_on_an_a100(lesson):
    _, printed = lesson("03_flash1_forward")
    assert "three kernels       2181 MB:  1070 µs for the bytes, 220 µs for the matmuls" in printed
    assert "FlashAttention-1     291 MB:   143 µs for the bytes, 220 µs for the matmuls" in printed


# Lesson 04


def test_D_needs_no_row_of_P():
    rng = np.random.default_rng(3)
    Q, dO = rng.standard_normal((2, 50, 16))
    K, V = rng.standard_normal((2, 70, 16))
    for causal in (False, True):
        O, LSE = attention(Q, K, V, causal=causal)
        seen = np.arange(70)[None, :] <= np.arange(50)[:, None] + 20 if causal else True
        P = np.where(seen, np.exp(Q @ K.T / 4 - LSE[:, None]), 0)
        assert (P * (dO @ V.T)).sum(axis=1) == pytest.approx((dO * O).sum(axis=1), abs=1e-12)


def test_the_tiny_backward_is_the_one_worked_by_hand(lesson):
    _, printed = lesson("04_flash_backward")
    grads = attention_gradients([[1.0]], [[0.0], [np.log(3)]], [[0.0], [4.0]], [[1.0]], scale=1.0)
    assert grads.dQ.item() == pytest.approx(0.75 * np.log(3))
    assert grads.dK.ravel() == pytest.approx([-0.75, 0.75])
    assert grads.dV.ravel() == pytest.approx([0.25, 0.75])
    assert "dV = [0.25 0.75], dP = [0. 4.]" in printed
    assert "rowsum(P∘dP) = 3, dS = [-0.75  0.75]" in printed
    assert "dq, dk, dV: [0.824] [-0.75  0.75] [0.25 0.75]" in printed


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_equal_the_oracle_and_central_differences(lesson, causal):
    names, _ = lesson("04_flash_backward")
    run = Run(Problem(21, 29, 4, 8, 8, causal))
    run.flash2()
    run.backward()
    data = [run.machine.to_host(name) for name in ("Q", "K", "V", "dO")]
    truth, naive = (f(*data, causal=causal) for f in (attention_gradients, naive_backward))
    floors = gradient_floors(*data, causal=causal, eps=EPS_FP32)
    nudged = names["central_differences"](*data, causal=causal)
    for name, nudge in zip(("dQ", "dK", "dV"), nudged, strict=True):
        of = (getattr(x, name) for x in (truth, naive))
        budget = Budget.of(*of, factor=GRADIENT_FACTOR, floor=getattr(floors, name))
        got = run.machine.to_host(name)
        assert budget.accepts(got)
        assert np.abs(got - nudge).max() <= budget.allowed
        assert not budget.accepts(got + 2 * budget.allowed)


PAPER = Problem(1024, 1024, 64, *paper_tile_sizes(192 * 1024 // 2, 64))
HEADS = 16 * 64


def test_seven_matmuls_for_six_and_what_the_paper_prints(lesson):
    _, printed = lesson("04_flash_backward")
    standard = HEADS * flops.matmul_flops(1024, 64, 6) / 1e9
    recomputing = HEADS * flops.matmul_flops(1024, 64, 7) / 1e9
    assert flops.FORWARD_MATMULS + flops.STANDARD_BACKWARD_MATMULS == 6
    assert flops.FORWARD_MATMULS + flops.FLASH_BACKWARD_MATMULS == 7
    assert (round(standard), round(recomputing)) == (825, 962)
    assert standard > 12 * 66.6, "the paper's column does not follow from its setting"
    assert recomputing > 12 * 75.2
    assert round(75.2 / 66.6, 2) == 1.13
    assert recomputing / standard == pytest.approx(7 / 6)
    assert "ratio 1.167; the paper: 75.2 / 66.6 = 1.129" in printed


def test_the_standard_passes_move_11N2_and_12Nd_metered_in_fp16(lesson):
    _, printed = lesson("04_flash_backward")
    run = Run(PAPER, sram_bytes=4 << 20, squares=True, dtype=np.float16)
    run.of(three_kernels, "Q K V S P O")
    run.of(standard_backward, "Q K V P dO dP dS dQ dK dV")
    metered = run.machine.traffic.total
    assert metered == 2 * (11 * 1024**2 + 12 * 1024 * 64)
    assert HEADS * metered / 1e9 == pytest.approx(25.2, abs=0.05)
    assert "standard, 11N² + 12Nd: 25.2 GB" in printed


@pytest.mark.parametrize(
    ("label", "dtypes", "gigabytes", "times"),
    [
        ("O, dQ fp32", {"O": np.float32, "dQ": np.float32}, 5.18, 4.9),
        ("dQ fp32", {"dQ": np.float32}, 4.37, 5.8),
        ("all fp16", {}, 3.70, 6.8),
    ],
)
def test_bytes_of_the_papers_setting_metered(lesson, label, dtypes, gigabytes, times):
    _, printed = lesson("04_flash_backward")
    run = Run(PAPER, dtype=np.float16, **dtypes)
    run.flash1()
    metered = HEADS * run.backward().traffic.total / 1e9
    standard = HEADS * 2 * (11 * 1024**2 + 12 * 1024 * 64) / 1e9
    assert metered == pytest.approx(gigabytes, abs=0.005)
    assert standard / metered == pytest.approx(times, abs=0.05)
    assert f"flash, {label:<11} {metered:>5.2f} GB, {standard / metered:.1f} times less" in printed


# Lesson 05


@pytest.mark.parametrize("n", [1, 5, 97, 256, 1000])
@pytest.mark.parametrize("d", [16, 40, 64, 128])
def test_flash2_moves_Q_O_LSE_once_and_K_V_for_every_tile_of_queries(n, d):
    Br, Bc = 96, 64
    machine = Run(Problem(n, n, d, Br, Bc)).flash2()
    assert machine.traffic.total == 4 * (n * d + n * d + n + cdiv(n, Br) * 2 * n * d)
    assert machine.traffic["O"].read == 0
    assert machine.traffic["O"].written == 4 * n * d
    stored = [e.bounds[0] for e in machine.events if (e.kind, e.array) == ("store", "O")]
    assert [row for start, stop in stored for row in range(start, stop)] == list(range(n))


def test_version_2_moves_two_thirds_of_version_1_with_square_tiles():
    for n, B in ((4096, 64), (4096, 128), (16384, 128)):
        p = Problem(n, n, 64, B, B)
        one, two = (
            total(f(p)) for f in (io_complexity.flash1_forward, io_complexity.flash2_forward)
        )
        assert two / one == pytest.approx(2 / 3, abs=0.02)


def test_non_matmul_flops_counted_for_both_versions(lesson):
    # That the closed forms are what is counted: tests/reference_numpy/test_flops.py.
    _, printed = lesson("05_flash2_forward")
    p = Problem(256, 256, 64, 64, 64)
    one, two = flops.flash1_elementwise(p), flops.flash2_elementwise(p)
    assert one - two == (2 * 64 + 3) * p.query_visits - 64 * 256
    assert (one, two) == (596_480, 478_720)
    for version, count in ((1, one), (2, two)):
        assert f"version {version}: {count:,} counted, {count:,} for the course's own" in printed


def test_who_is_busy(lesson):
    names, printed = lesson("05_flash2_forward")
    busy = names["busy"]
    assert busy(16, 108) == 16 / 108
    assert busy(128, 108) == 128 / 216
    assert busy(108, 108) == 1
    assert "    8     16    8,192        128   8,192        59%    100%      97%   99%" in printed


def test_half_of_the_tiles_are_skipped_under_a_causal_mask():
    n, B, T = 1024, 64, 16
    full = Run(Problem(n, n, 64, B, B)).flash2()
    causal = Run(Problem(n, n, 64, B, B, causal=True)).flash2()
    for array in ("K", "V"):
        saved = 1 - causal.traffic[array].read / full.traffic[array].read
        assert saved == (T - 1) / (2 * T)


def test_split_K_moves_half_as_much_again_through_shared_memory(lesson):
    _, printed = lesson("05_flash2_forward")
    for warps in (2, 4, 8):
        split = shared_memory_elements(64, 64, 64, warps)
        assert split["split_k"] / split["split_q"] == pytest.approx(1.53, abs=0.005)
        assert f"{warps} warps: split K {2 * split['split_k'] / 1024:>4.0f} KB" in printed


def test_the_backward_moves_4T_and_5_arrays_and_its_statistics(lesson):
    _, printed = lesson("05_flash2_forward")
    n, d, B = 1024, 64, 64
    T = n // B
    run = Run(Problem(n, n, d, B, B))
    run.flash2()
    before = run.machine.traffic.total
    moved = run.backward().traffic.total - before
    assert moved == 4 * ((4 * T + 5) * n * d + (2 * T + 1) * n)
    assert "K, V outside: 4T + 5 = 69,  Q outside: 6T + 3 = 99" in printed
    assert f"metered, K, V outside: {moved / (4 * n * d):.1f}" in printed
