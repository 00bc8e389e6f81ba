"""FlashAttention-1 in CUDA, and the naive backward: exact, no races, traffic as the closed forms.

Every launch here runs in the simulator, which raises Fault on a race, on a read of what was never
written in shared memory, and on an access out of bounds: a result without a Fault has none of them.
"""

import re
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from autograder.exactness import FORWARD_FACTOR, FORWARD_FLOOR, GRADIENT_FACTOR, Budget
from autograder.fixtures import fixture
from cupy_kernels import RawKernel, backward, flash1, forward, measure, naive_backward
from cupy_kernels.attention import Attention, cdiv
from cupy_kernels.kernel_files import KernelFile
from cupy_kernels.simulator import Fault
from reference_numpy import io_complexity, oracle
from reference_numpy.io_complexity import Problem
from reference_numpy.tiling import fully_masked, tiles

SECTOR = 32
Bc = flash1.Bc


@dataclass(frozen=True, eq=False)
class Case:
    """q and do (batch, heads, Nq, d), k and v (batch, kv_heads, Nk, d), float32."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    do: np.ndarray
    causal: bool = False
    scale: float | None = None

    @property
    def problem(self) -> Attention:
        return Attention.of(self.q, self.k, self.v, self.causal, self.scale)

    @property
    def options(self) -> dict:
        return {"causal": self.causal, "scale": self.scale}


def normal(Nq, Nk, d, batch=1, heads=1, kv_heads=None, causal=False) -> Case:
    rng = np.random.default_rng([Nq, Nk, d])
    on_queries, on_keys = (batch, heads, Nq, d), (batch, kv_heads or heads, Nk, d)
    shapes = (on_queries, on_keys, on_keys, on_queries)
    return Case(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes), causal)


def of_fixture(name) -> Case:
    fx = fixture(name, seed=7)
    data = (array[None, None] for array in (fx.Q, fx.K, fx.V, fx.dO))
    return Case(*data, fx.causal, fx.scale)


def deep_negative_ragged() -> Case:
    """Scores near −300 and 150 keys: one that is not there would have e^300 times their weight."""
    case = of_fixture("deep_negative")
    return replace(case, k=case.k[:, :, :150], v=case.v[:, :, :150])


FIXTURES = (
    *("normal", "rising", "deep_negative", "ragged", "one_hot_values", "more_keys"),
    *("causal", "causal_more_keys", "masked_rows", "one_row", "one_key", "causal_rising"),
)
OTHERS = {
    "deep_negative_ragged": deep_negative_ragged,
    "more_queries": lambda: normal(100, 40, 32),
    "batch": lambda: normal(40, 40, 32, batch=2, heads=2),
    "d96": lambda: normal(40, 70, 96),
    "d96_causal": lambda: normal(40, 70, 96, causal=True),
    "d128": lambda: normal(40, 70, 128),
    "d128_masked_rows": lambda: normal(50, 33, 128, causal=True),
    "gqa": lambda: normal(40, 40, 32, batch=2, heads=6, kv_heads=2),
    "gqa_causal": lambda: normal(75, 40, 32, batch=2, heads=6, kv_heads=2, causal=True),
    "small": lambda: normal(70, 75, 32),
    "small_masked_rows": lambda: normal(75, 40, 32, causal=True),
    "small_causal": lambda: normal(75, 70, 32, causal=True),
}


@cache
def case_of(name) -> Case:
    return OTHERS[name]() if name in OTHERS else of_fixture(name)


# ---- exactness: at most 2 (gradients 3) times the error of a naive fp32 kernel, and a floor ------


@cache
def forward_budgets(name) -> tuple[Budget, Budget]:
    case = case_of(name)
    data = case.q, case.k, case.v
    truth, naive = (f(*data, **case.options) for f in (oracle.attention, oracle.naive_forward))
    floors = (FORWARD_FLOOR, FORWARD_FLOOR + oracle.lse_floor(*data[:2], **case.options))
    return tuple(
        Budget.of(right, usual, factor=FORWARD_FACTOR, floor=floor)
        for right, usual, floor in zip(truth, naive, floors, strict=True)
    )


@cache
def gradient_budgets(name) -> tuple[Budget, Budget, Budget]:
    case = case_of(name)
    data = case.q, case.k, case.v, case.do
    truth = oracle.attention_gradients(*data, **case.options)
    naive = oracle.naive_backward(*data, **case.options)
    floors = oracle.gradient_floors(*data, **case.options, eps=oracle.EPS_FP32)
    return tuple(
        Budget.of(getattr(truth, g), getattr(naive, g), factor=GRADIENT_FACTOR, floor=floor)
        for g, floor in (("dQ", floors.dQ), ("dK", floors.dK), ("dV", floors.dV))
    )


def stored_forward(case: Case):
    """O and LSE as a perfect forward pass leaves them, so that a gradient's error is its own."""
    found = oracle.attention(case.q, case.k, case.v, **case.options)
    return tuple(array.astype(np.float32) for array in found)


def run_forward(case: Case):
    """(O, LSE) by the launcher itself; what it leaves unwritten is NaN."""
    o, lse = np.full_like(case.q, np.nan), np.full(case.q.shape[:3], np.nan, np.float32)
    flash1.flash1_forward(case.q, case.k, case.v, o, lse, case.problem, "sim")
    return o, lse


def run_backward(case: Case, launch=flash1.flash1_backward):
    """(dQ, dK, dV) by the launcher itself; what it leaves unwritten is NaN."""
    o, lse = stored_forward(case)
    gradients = [np.full_like(array, np.nan) for array in (case.q, case.k, case.v)]
    given = (case.q, case.k, case.v, o, lse, case.do)
    launch(*given, *gradients, case.problem, "sim")
    return gradients


def outside(results, budgets) -> list[int]:
    """Which of the results err by more than they may."""
    pairs = zip(results, budgets, strict=True)
    return [i for i, (result, budget) in enumerate(pairs) if not budget.accepts(result)]


@pytest.mark.parametrize("name", [*FIXTURES, *OTHERS])
def test_flash1_forward_is_exact(name):
    assert outside(run_forward(case_of(name)), forward_budgets(name)) == []


@pytest.mark.parametrize("name", [*FIXTURES, *OTHERS])
def test_flash1_backward_is_exact(name):
    assert outside(run_backward(case_of(name)), gradient_budgets(name)) == []


@pytest.mark.parametrize(
    "name", ["ragged", "rising", "small_masked_rows", "one_key", "one_row", "gqa"]
)
def test_naive_backward_is_exact(name):
    found = run_backward(case_of(name), naive_backward.naive_backward)
    assert outside(found, gradient_budgets(name)) == []


@pytest.mark.parametrize("kernel", ["flash1_backward", "naive_backward"])
def test_forward_and_backward_by_name(kernel):
    case = case_of("gqa_causal")
    o, lse = forward(case.q, case.k, case.v, kernel="flash1_forward", causal=True, device="sim")
    given = (case.q, case.k, case.v, o, lse, case.do)
    gradients = backward(*given, kernel=kernel, causal=True, device="sim")
    assert outside((o, lse), forward_budgets("gqa_causal")) == []
    assert outside(gradients, gradient_budgets("gqa_causal")) == []


def test_rows_that_see_no_key():
    case = case_of("masked_rows")
    blind = case.q.shape[2] - case.k.shape[2]
    o, lse = run_forward(case)
    dq, _, _ = run_backward(case)
    assert blind > flash1.forward_rows(64), "tiles that are skipped, and one that is not"
    assert (o[:, :, :blind] == 0).all() and (dq[:, :, :blind] == 0).all()
    assert np.isneginf(lse[:, :, :blind]).all() and np.isfinite(lse[:, :, blind:]).all()


@pytest.mark.parametrize("scale", [0.0, 0.7, -0.3])
def test_any_scale_will_do(scale):
    case = replace(case_of("small"), scale=scale)
    o, lse = run_forward(case)
    truth, true_lse = oracle.attention(case.q, case.k, case.v, scale=scale)
    assert np.abs(o - truth).max() < 2e-6 and np.abs(lse - true_lse).max() < 2e-6


# ---- traffic, in closed form ---------------------------------------------------------------------


def matrix_sectors(elements: int) -> int:
    """Of rows of d floats: d is a multiple of 8, so that no two rows share a sector."""
    return 4 * elements // SECTOR


def run_sectors(start: int, length: int) -> int:
    """Of `length` neighbouring floats from number `start` on."""
    return 0 if length <= 0 else (4 * (start + length) - 1) // SECTOR - 4 * start // SECTOR + 1


def row_value_sectors(p: Problem, heads: int, rows_a_request: int, skip_first=False) -> int:
    """Of one float a query, for each visited tile, a warp's request for `rows_a_request` of them.

    Where these are a multiple of 8 and Nq too: heads · visits · 4 / 32.
    """
    total = 0
    for head in range(heads):
        for rows in tiles(p.Nq, p.Br):
            runs = [
                run_sectors(head * p.Nq + i, min(rows_a_request, p.Nq - i))
                for i in range(rows.start, rows.stop, rows_a_request)
            ]
            seen = [c for c in tiles(p.Nk, p.Bc) if not is_skipped(p, rows, c)]
            total += sum(runs) * (len(seen) - bool(skip_first and seen))
    return total


def is_skipped(p, rows, cols):
    return p.causal and fully_masked(rows, cols, p.Nq, p.Nk)


def problem_of(case: Case, Br: int) -> Problem:
    return Problem(case.q.shape[2], case.k.shape[2], case.q.shape[3], Br, Bc, case.causal)


def sectors(run, case):
    """({kernel: arrays}, traffic) of what `run` launches for the case."""
    with measure() as traffic:
        run(case)
    return {kernel.kernel: kernel.arrays for kernel in traffic.kernels}, traffic


def sectors_of_gradients(case):
    """The same for the naive backward over a P that is there already."""
    p = naive_backward.stored_probabilities(case.q, case.k, case.problem, "sim")

    def run(case):
        gradients = [np.empty_like(array) for array in (case.q, case.k, case.v)]
        given = (case.q, case.k, case.v, p, case.do)
        naive_backward.gradients(*given, *gradients, case.problem, "sim")

    return sectors(run, case)


TRAFFIC = {
    "whole_tiles": lambda: normal(64, 96, 64, heads=2),
    "causal_whole_tiles": lambda: normal(64, 96, 64, causal=True),
    "ragged_gqa": lambda: normal(45, 70, 32, batch=2, heads=2, kv_heads=1),
    "d96": lambda: normal(48, 64, 96),
    "d128": lambda: normal(36, 64, 128),
    "causal_more_queries": lambda: normal(96, 40, 64, causal=True),
}


@pytest.mark.parametrize("name", TRAFFIC)
def test_sectors_of_the_forward_kernel(name):
    """Matrices: 32 B · sectors = 4 B · elements of io_complexity.flash1_forward, head by head."""
    case = TRAFFIC[name]()
    p, heads = problem_of(case, flash1.forward_rows(case.q.shape[3])), len(case.q) * case.q.shape[1]
    io, rows = io_complexity.flash1_forward(p), p.Br // 4
    arrays = sectors(run_forward, case)[0]["flash1_forward"]
    for array, matrix in (("q", "Q"), ("k", "K"), ("v", "V"), ("o", "O")):
        assert arrays[array].load_sectors == heads * matrix_sectors(io[matrix].read), array
        assert arrays[array].store_sectors == heads * matrix_sectors(io[matrix].written), array
    for array in ("l", "m"):
        read = row_value_sectors(p, heads, rows, skip_first=True)
        assert arrays[array].load_sectors == read, array
        assert arrays[array].store_sectors == row_value_sectors(p, heads, rows), array
    once = replace(p, Bc=p.Nk, causal=False)
    assert arrays["lse"].store_sectors == row_value_sectors(once, heads, rows)
    assert arrays["lse"].load_sectors == 0
    assert arrays["lse"].store_bytes == 4 * heads * io["LSE"].written, "written once"


@pytest.mark.parametrize("name", TRAFFIC)
def test_sectors_of_the_backward_kernels(name):
    """Matrices: 32 B · sectors = 4 B · elements of io_complexity.flash_backward, head by head.

    K, V, dK, dV move once for each head of their own, whatever the query heads that share it.
    """
    case = TRAFFIC[name]()
    p = problem_of(case, flash1.backward_rows(case.q.shape[3]))
    heads, kv_heads = (len(x) * x.shape[1] for x in (case.q, case.k))
    io = io_complexity.flash_backward(p)
    kernels, _ = sectors(run_backward, case)
    dots, main = kernels["flash1_row_dots"], kernels["flash1_backward"]
    for array in ("o", "dO"):
        assert dots[array].load_sectors == heads * matrix_sectors(io["O"].read), array
    assert dots["D"].store_sectors == cdiv(4 * heads * io["D"].written, SECTOR)
    moved = {"q": (heads, "Q"), "k": (kv_heads, "K"), "v": (kv_heads, "V"), "dq": (heads, "dQ")}
    moved |= {"dk": (kv_heads, "dK"), "dv": (kv_heads, "dV")}
    for array, (times, matrix) in moved.items():
        assert main[array].load_sectors == times * matrix_sectors(io[matrix].read), array
        assert main[array].store_sectors == times * matrix_sectors(io[matrix].written), array
    again = io["dO"].read - io["O"].read  # what is left of dO's reads after D
    assert main["dO"].load_sectors == heads * matrix_sectors(again)
    for array in ("lse", "D"):
        assert main[array].load_sectors == row_value_sectors(p, heads, p.Br), array


def test_the_row_values_fill_their_sectors():
    """d ≤ 96, Nq a multiple of 8: l and m too are 32 B · sectors = 4 B · elements."""
    case = TRAFFIC["whole_tiles"]()
    io = io_complexity.flash1_forward(problem_of(case, Br=32))
    arrays = sectors(run_forward, case)[0]["flash1_forward"]
    for name in ("l", "m"):
        assert SECTOR * arrays[name].load_sectors == 4 * 2 * io[name].read
        assert SECTOR * arrays[name].store_sectors == 4 * 2 * io[name].written


@pytest.mark.parametrize(("heads", "kv_heads", "N", "d"), [(1, 1, 64, 32), (4, 2, 32, 64)])
def test_sectors_of_the_naive_backward(heads, kv_heads, N, d):
    """Whole tiles. A is one sector a load, X four; the other products are those of the forward."""
    case = normal(N, N, d, heads=heads, kv_heads=kv_heads)
    kernels, _ = sectors_of_gradients(case)
    S, warps = 4 * heads * N * N // SECTOR, d // 32 * N
    transposed = kernels["naive_transposed_sum"]
    loads = 2 * kv_heads * warps * (heads // kv_heads) * N  # a warp's, for dV and for dK
    assert transposed["a"].load_sectors == loads
    assert transposed["x"].load_sectors == 4 * loads
    assert transposed["y"].store_sectors == 2 * matrix_sectors(kv_heads * N * d)
    softmax = kernels["naive_softmax_backward"]
    assert softmax["p"].load_sectors == softmax["dp"].load_sectors == 2 * S
    assert softmax["ds"].store_sectors == S
    assert kernels["naive_scores"]["s"].store_sectors == S, "dP"
    assert kernels["naive_weighted_sum"]["o"].store_sectors == matrix_sectors(heads * N * d)


def test_the_naive_backward_needs_what_algorithm_3_moves():
    """Each launch's bytes counted once: 7N² + 8Nd elements."""
    case = normal(64, 64, 32)
    _, traffic = sectors_of_gradients(case)
    needed = io_complexity.total(io_complexity.standard_backward(problem_of(case, Br=64)))
    assert needed == 7 * 64 * 64 + 8 * 64 * 32
    totals = traffic.totals
    assert totals.unique_bytes_read + totals.unique_bytes_written == 4 * needed


# ---- on chip -------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", flash1.HEAD_DIMS)
def test_no_bank_conflicts_no_spills_and_48_kilobytes(d):
    case = normal(33, 40, d)
    _, traffic = sectors(run_forward, case)
    _, backward_traffic = sectors(run_backward, case)
    assert traffic.totals.shared_conflicts == backward_traffic.totals.shared_conflicts == 0
    for file in (flash1.forward_file(d), flash1.backward_file(d), flash1.ROW_DOTS):
        found = file.kernel("sim").resources
        assert found.spills is False and found.stack_bytes == 0
        assert found.static_shared_bytes <= 48 * 1024


# ---- every barrier is needed, and wrong kernels are found out ------------------------------------


@dataclass(frozen=True)
class ChangedFile:
    """A kernel file whose text was changed, in place of the right one."""

    file: KernelFile
    source: str

    def kernel(self, device):
        file = self.file
        return RawKernel(
            self.source, file.name, file.options, device=device, filename=file.filename
        )


KERNELS = {  # where the launchers look each kernel up, and how it is judged
    "flash1_forward": (flash1, "forward_file", run_forward, forward_budgets),
    "flash1_backward": (flash1, "backward_file", run_backward, gradient_budgets),
    "flash1_row_dots": (flash1, "ROW_DOTS", run_backward, gradient_budgets),
    "naive_softmax_backward": (
        naive_backward,
        "SOFTMAX_BACKWARD",
        lambda case: run_backward(case, naive_backward.naive_backward),
        gradient_budgets,
    ),
    "naive_transposed_sum": (
        naive_backward,
        "TRANSPOSED_SUM",
        lambda case: run_backward(case, naive_backward.naive_backward),
        gradient_budgets,
    ),
}


def use(monkeypatch, kernel, change):
    """Let the launchers run `change(source)` in place of the kernel."""
    module, attribute, *_ = KERNELS[kernel]
    right = getattr(module, attribute)

    def changed(file):
        return ChangedFile(file, change(file.source))

    replacement = changed(right) if isinstance(right, KernelFile) else lambda d: changed(right(d))
    monkeypatch.setattr(module, attribute, replacement)


def verdict(kernel, name) -> str:
    """ "fault: …", "wrong" or "right": what comes of the kernel in use on a case."""
    *_, run, budgets = KERNELS[kernel]
    try:
        found = run(case_of(name))
    except Fault as fault:
        return f"fault: {fault}"
    return "wrong" if outside(found, budgets(name)) else "right"


BARRIER = re.compile(r"__sync(?:threads|warp)\(\);")
BARRIERS = [
    (kernel, number)
    for kernel, file in (
        ("flash1_forward", flash1.forward_file(64)),
        ("flash1_backward", flash1.backward_file(64)),
    )
    for number in range(len(BARRIER.findall(file.source)))
]


@pytest.mark.parametrize(("kernel", "number"), BARRIERS)
def test_a_missing_barrier_is_noticed(monkeypatch, kernel, number):
    def without(source):
        match = list(BARRIER.finditer(source))[number]
        return source[: match.start()] + ";" + source[match.end() :]

    use(monkeypatch, kernel, without)
    assert "race" in verdict(kernel, "small")


@pytest.mark.parametrize("kernel", ["flash1_forward", "flash1_backward"])
def test_every_barrier_says_why(kernel):
    source = getattr(*KERNELS[kernel][:2])(64).source
    assert all(
        re.search(r"\(\);  // \w+", line) for line in source.splitlines() if "__sync" in line
    )


MUTANTS = {  # kernel: {name: (what is there, what it becomes, the case that finds it)}
    "flash1_forward": {
        "wrong_scale": ("scale * s[r]", "s[r]", "small"),
        "unmasked_tail": ("key < Nk && ", "", "small"),
        "top_left_mask": ("row + r + Nk - Nq", "row + r", "small_causal"),
        "frozen_max": ("fmaxf(m_old, m_tile[r])", "first ? m_tile[r] : m_old", "rising"),
        "no_rescale": ("l_old * shifted_exp(m_old, m_new)", "l_old", "small"),
        "p_not_divided": ("join * inverse * p[r]", "join * p[r]", "small"),
        "unguarded_minus_infinity": ("m == -INFINITY ? 0.0f : ", "", "small_masked_rows"),
        "reads_o_too_early": ("first ? 0 : left", "left", "small"),
        "heads_mixed_up": ("head / (heads / kv_heads)", "head % kv_heads", "gqa"),
        "skips_too_much": ("(Nk - Nq)) / Br", "(Nk - Nq) + Br - 1) / Br", "small_causal"),
        "forgets_unseen_rows": ("max(0, Nq - Nk) / Br * Br", "0", "small_masked_rows"),
        "lse_of_one_tile": ("m_row + logf(l_row)", "m_row", "small"),
    },
    "flash1_backward": {
        "wrong_scale": ("expf(scale * s[r]", "expf(s[r]", "small"),
        "unmasked_tail": ("key < Nk && ", "", "deep_negative_ragged"),
        "top_left_mask": ("row + r + Nk - Nq", "row + r", "small_causal"),
        "dropped_dv_term": ("add_transposed(dV,", "if (tile) add_transposed(dV,", "small"),
        "dropped_d": (" - D_tile[my_row + r]", "", "small"),
        "ds_unscaled": ("scale * p[r]", "p[r]", "small"),
        "dq_overwritten": ("first_key == 0 ? 0 : left", "0", "small"),
        "dq_read_too_early": ("first_key == 0 ? 0 : left", "left", "small"),
        "forgets_unseen_rows": ("max(0, Nq - Nk) / Br * Br", "0", "small_masked_rows"),
        "one_head_of_the_group": ("h < group", "h < 1", "gqa"),
    },
    "flash1_row_dots": {"without_o": ("dO[start + c] * o[start + c]", "dO[start + c]", "small")},
    "naive_softmax_backward": {
        "no_row_sum": ("(dp[j] - sum)", "dp[j]", "small"),
        "unscaled": ("scale * p[j]", "p[j]", "small"),
    },
    "naive_transposed_sum": {"one_head": ("i < first_row + rows", "i < first_row + Nq", "gqa")},
}


@pytest.mark.parametrize(
    ("kernel", "name"), [(kernel, name) for kernel, names in MUTANTS.items() for name in names]
)
def test_a_wrong_kernel_is_found_out(monkeypatch, kernel, name):
    old, new, case = MUTANTS[kernel][name]

    def change(source):
        assert old in source
        return source.replace(old, new)

    use(monkeypatch, kernel, change)
    assert verdict(kernel, case) == "wrong"


def test_blocks_that_write_one_head_race(monkeypatch):
    def change(source):
        return source.replace("blockIdx.x * group", "blockIdx.x")

    use(monkeypatch, "flash1_backward", change)
    assert "two blocks touch dq" in verdict("flash1_backward", "gqa")


@pytest.mark.parametrize(
    ("old", "new", "array"),
    [
        ("causal ? max(0, first_key - (Nk - Nq)) / Br : 0", "0", "q"),
        ("is_mine && last", "is_mine", "lse"),
        ("is_mine && !first", "is_mine", "l"),
    ],
    ids=["skips_no_tile", "lse_at_every_tile", "reads_l_and_m_at_first"],
)
def test_a_dear_kernel_is_found_out(monkeypatch, old, new, array):
    """Sectors tell a kernel that moves more than Algorithm 1 does, whatever it computes."""
    case = normal(64, 64, 32, causal=True)
    right = sectors(run_forward, case)[0]["flash1_forward"][array]
    use(monkeypatch, "flash1_forward", lambda source: source.replace(old, new))
    dear = sectors(run_forward, case)[0]["flash1_forward"][array]
    assert dear.load_sectors + dear.store_sectors > right.load_sectors + right.store_sectors


def test_without_padding_the_lanes_that_read_k_meet_in_four_banks(monkeypatch):
    case = normal(32, 32, 32)
    use(monkeypatch, "flash1_forward", lambda source: source.replace("[d + PADDING]", "[d]"))
    _, traffic = sectors(run_forward, case)
    loads_of_k = 4 * 32 // 4  # requests: four warps, d columns in pieces of 4
    assert traffic.totals.shared_conflicts == loads_of_k * (32 - 4), "32 wavefronts for 4"


# ---- what is refused, before any launch ----------------------------------------------------------


@pytest.mark.parametrize("d", [16, 80, 256])
def test_other_head_sizes_are_refused(d):
    case = normal(4, 4, d)
    told = f"takes head size d = 32, 64, 96, 128, not {d}"
    with pytest.raises(ValueError, match=f"flash1_forward {told}"):
        forward(case.q, case.k, case.v, kernel="flash1_forward", device="sim")
    o, lse = stored_forward(case)
    with pytest.raises(ValueError, match=f"flash1_backward {told}"):
        backward(case.q, case.k, case.v, o, lse, case.do, kernel="flash1_backward", device="sim")


@pytest.mark.parametrize("kernel", ["flash1_backward", "naive_backward"])
def test_half_precision_is_refused(kernel):
    q = np.zeros((1, 1, 4, 32), np.float16)
    with pytest.raises(TypeError, match=f"{kernel} takes float32, not float16"):
        backward(q, q, q, q, q[..., 0].astype("f"), q, kernel=kernel, device="sim")


# ---- on a GPU ------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ["flash1_backward", "naive_backward"])
@pytest.mark.parametrize("name", [*FIXTURES, *OTHERS])
def test_exact_on_the_gpu(gpu, name, kernel):
    case = case_of(name)
    given = (case.q, case.k, case.v)
    found = forward(*given, kernel="flash1_forward", device="gpu", **case.options)
    assert outside(found, forward_budgets(name)) == []
    stored = stored_forward(case)
    found = backward(*given, *stored, case.do, kernel=kernel, device="gpu", **case.options)
    assert outside(found, gradient_budgets(name)) == []
