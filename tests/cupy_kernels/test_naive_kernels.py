import numpy as np
import pytest

from cupy_kernels import forward, list_kernels, measure
from cupy_kernels.attention import Attention, cdiv
from cupy_kernels.kernel_files import KernelFile
from cupy_kernels.naive_forward import SCORES, naive_forward
from cupy_kernels.nvrtc import KERNEL_DIR
from cupy_kernels.registry import FORWARD_KERNELS

SECTOR = 32


def problem_arrays(batch=1, heads=1, kv_heads=None, Nq=32, Nk=32, d=32, seed=0, spread=1.0):
    random = np.random.default_rng(seed)
    kv_heads = heads if kv_heads is None else kv_heads
    q = spread * random.standard_normal((batch, heads, Nq, d))
    k, v = random.standard_normal((2, batch, kv_heads, Nk, d))
    return tuple(array.astype(np.float32) for array in (q, k, v))


def truth(q, k, v, causal=False, scale=None):
    """float64 attention on (batch, heads, N, d), rows without a visible key 0 and −∞."""
    group = q.shape[1] // k.shape[1]
    q, k, v = q.astype(np.float64), *(np.repeat(x.astype(np.float64), group, 1) for x in (k, v))
    Nq, Nk = q.shape[2], k.shape[2]
    s = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        visible = np.arange(Nk) <= np.arange(Nq)[:, None] + Nk - Nq
        s = np.where(visible, s, -np.inf)
    m = s.max(-1, keepdims=True)
    w = np.exp(s - np.where(np.isfinite(m), m, 0))
    total = w.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (m + np.log(total))[..., 0]
    return w @ v / np.where(total > 0, total, 1), lse


def assert_exact(found, expected, tolerance=1e-5):
    (o, lse), (o_true, lse_true) = found, expected
    assert o.dtype == lse.dtype == np.float32
    assert np.abs(o - o_true).max() < tolerance
    dead = np.isneginf(lse_true)
    np.testing.assert_array_equal(np.isneginf(lse), dead)
    assert np.abs(lse[~dead] - lse_true[~dead]).max(initial=0) < tolerance
    assert (o[dead] == 0).all()


# ---- exactness ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes",
    [
        {"Nq": 64, "Nk": 64, "d": 64},
        {"batch": 2, "heads": 3, "Nq": 40, "Nk": 40, "d": 32},
        {"Nq": 37, "Nk": 53, "d": 24},  # no size is a multiple of a tile
        {"Nq": 1, "Nk": 130, "d": 64},  # one row
        {"Nq": 33, "Nk": 1, "d": 8},  # one key
        {"Nq": 3, "Nk": 3, "d": 1},
        {"heads": 4, "kv_heads": 2, "Nq": 20, "Nk": 36, "d": 16},  # two query heads a kv head
        {"batch": 2, "heads": 3, "kv_heads": 1, "Nq": 9, "Nk": 17, "d": 40},
    ],
    ids=lambda sizes: "-".join(f"{name}{size}" for name, size in sizes.items()),
)
@pytest.mark.parametrize("causal", [False, True])
def test_naive_forward_is_exact(sizes, causal):
    q, k, v = problem_arrays(**sizes)
    assert_exact(forward(q, k, v, causal=causal, device="sim"), truth(q, k, v, causal))


def test_rows_that_see_no_key_give_zero_and_minus_infinity():
    q, k, v = problem_arrays(Nq=40, Nk=24, d=16)
    o, lse = forward(q, k, v, causal=True, device="sim")
    assert_exact((o, lse), truth(q, k, v, causal=True))
    assert np.isneginf(lse[0, 0, :16]).all() and np.isfinite(lse[0, 0, 16:]).all()
    assert not np.isnan(o).any()


def test_large_scores_do_not_overflow():
    q, k, v = problem_arrays(Nq=32, Nk=64, d=32, spread=100.0)
    o, _ = forward(q, k, v, device="sim")
    assert np.isfinite(o).all()
    assert np.abs(o - truth(q, k, v)[0]).max() < 1e-4


def test_the_scale_is_one_over_root_d_or_as_told():
    q, k, v = problem_arrays(d=16)
    assert_exact(forward(q, k, v, scale=0.5, device="sim"), truth(q, k, v, scale=0.5))
    assert_exact(forward(q, k, v, scale=0, device="sim"), truth(q, k, v, scale=0))


def test_inputs_that_are_not_contiguous_are_copied_first():
    q, k, v = problem_arrays(Nq=24, Nk=40, d=16)
    strided = (np.asfortranarray(q), k.swapaxes(2, 3).copy().swapaxes(2, 3), v)
    assert_exact(forward(*strided, device="sim"), truth(q, k, v))


# ---- traffic, in closed form ------------------------------------------------------------------


def row_sectors(rows, columns, tile=32):
    """Sectors that warps touch in rows of `columns` floats, a warp on each `tile` of a row."""
    total = 0
    for row in range(rows):
        for start in range(0, columns, tile):
            first = 4 * (row * columns + start)
            last = 4 * (row * columns + min(start + tile, columns)) - 1
            total += last // SECTOR - first // SECTOR + 1
    return total


def measured(heads, N, d, Nk=None):
    q, k, v = problem_arrays(heads=heads, Nq=N, Nk=Nk or N, d=d)
    with measure() as traffic:
        forward(q, k, v, device="sim")
    return {kernel.kernel: kernel for kernel in traffic.kernels}, traffic


@pytest.mark.parametrize(("heads", "N", "d"), [(1, 64, 32), (2, 128, 64)])
def test_sectors_of_whole_tiles(heads, N, d):
    kernels, _ = measured(heads, N, d)
    warps = heads * N * N // 32
    scores = kernels["naive_scores"].arrays
    assert scores["q"].load_sectors == warps * d, "one address for the warp"
    assert scores["k"].load_sectors == warps * d * 32, "a sector for every thread"
    assert scores["s"].store_sectors == warps * 4
    softmax = kernels["naive_softmax"].arrays
    assert softmax["s"].load_sectors == 3 * heads * N * N * 4 // SECTOR
    assert softmax["p"].store_sectors == heads * N * N * 4 // SECTOR
    assert softmax["lse"].store_sectors == heads * N
    weighted = kernels["naive_weighted_sum"].arrays
    assert weighted["p"].load_sectors == heads * N * (d // 32) * N
    assert weighted["v"].load_sectors == heads * N * (d // 32) * N * 4
    assert weighted["o"].store_sectors == heads * N * d * 4 // SECTOR


@pytest.mark.parametrize(("N", "Nk", "d"), [(20, 100, 24), (33, 50, 40)])
def test_sectors_of_ragged_sizes(N, Nk, d):
    kernels, _ = measured(1, N, d, Nk)
    scores = kernels["naive_scores"].arrays
    assert scores["q"].load_sectors == N * cdiv(Nk, 32) * d
    assert scores["k"].load_sectors == N * Nk * d, "d is a multiple of 8: rows share no sector"
    assert scores["s"].store_sectors == row_sectors(N, Nk)
    assert kernels["naive_softmax"].arrays["s"].load_sectors == 3 * row_sectors(N, Nk)
    weighted = kernels["naive_weighted_sum"].arrays
    assert weighted["p"].load_sectors == N * cdiv(d, 32) * Nk
    assert weighted["v"].load_sectors == N * row_sectors(Nk, d)
    assert weighted["o"].store_sectors == row_sectors(N, d)


def test_the_bytes_grow_with_n_squared():
    heads, N, d = 2, 96, 32
    _, traffic = measured(heads, N, d)
    arrays = traffic.per_array()
    assert arrays["s"].load_bytes == 3 * 4 * heads * N * N
    assert arrays["s"].store_bytes == arrays["p"].store_bytes == 4 * heads * N * N
    assert arrays["q"].load_bytes == arrays["k"].load_bytes == 4 * heads * N * N * d
    compulsory = sum(a.unique_bytes_read + a.unique_bytes_written for a in arrays.values())
    assert compulsory == 4 * heads * (4 * N * N + 4 * N * d + N)


def test_each_figure_belongs_to_its_source_line():
    kernels, _ = measured(1, 64, 32)
    busy = {
        line.line: line
        for line in kernels["naive_scores"].lines
        if line.load_requests + line.store_requests
    }
    text = SCORES.source.splitlines()
    assigned = {text[number - 1].split("=")[0].strip(): line for number, line in busy.items()}
    a_request = {
        what: (line.load_sectors + line.store_sectors) / (line.load_requests + line.store_requests)
        for what, line in assigned.items()
    }
    q, k, s = "const float q_c", "const float k_c", "s[query_row * Nk + j]"
    assert a_request == {q: 1, k: 32, s: 4}
    assert not any(line.shared_conflicts for line in kernels["naive_softmax"].lines)


def test_sectors_equal_the_ones_a_gpu_counted():
    """Read off Nsight Compute on an H200, for this size and these access patterns."""
    kernels, _ = measured(heads=2, N=256, d=64)
    totals = {name: kernel.totals for name, kernel in kernels.items()}
    assert totals["naive_scores"].load_sectors == 8_650_752
    assert totals["naive_scores"].store_sectors == 16_384
    assert totals["naive_softmax"].load_sectors == 49_152
    assert totals["naive_weighted_sum"].load_sectors == 1_310_720
    assert totals["naive_weighted_sum"].store_sectors == 4_096


# ---- what is refused, before any launch -------------------------------------------------------


@pytest.fixture
def no_launch(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was launched")

    monkeypatch.setattr("cupy_kernels.simulated_kernel.SimulatedKernel.launch", refuse)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kernel": "fast"}, "no kernel 'fast': one of naive_forward"),
        ({"q": np.zeros((4, 8), "f")}, r"q is \(4, 8\), not \(batch, heads, N, d\)"),
        ({"q": [1]}, r"q is list, not \(batch"),
        ({"k": np.zeros((1, 2, 4, 8), "d")}, "k is float64 and q is float32"),
        ({"v": np.zeros((1, 2, 5, 8), "f")}, r"k \(1, 2, 4, 8\) and v \(1, 2, 5, 8\) differ"),
        ({"q": np.zeros((2, 2, 4, 8), "f")}, "differ in batch or d"),
        ({"q": np.zeros((1, 3, 4, 8), "f")}, "2 kv heads do not divide 3 query heads"),
        ({"q": np.zeros((1, 2, 0, 8), "f")}, "no size may be 0"),
    ],
)
def test_a_wrong_problem_is_one_clear_line(no_launch, change, told):
    arrays = {name: np.zeros((1, 2, 4, 8), np.float32) for name in "qkv"}
    with pytest.raises((TypeError, ValueError), match=told) as caught:
        forward(**{**arrays, **change}, device="sim")
    assert "\n" not in str(caught.value)


def test_an_unsupported_dtype_is_refused_before_any_launch(no_launch):
    q = np.zeros((1, 1, 4, 8), np.float16)
    with pytest.raises(TypeError, match="naive_forward takes float32, not float16"):
        forward(q, q, q, device="sim")


def test_an_unsupported_head_size_is_refused_before_any_launch(no_launch, monkeypatch):
    kernel = FORWARD_KERNELS["naive_forward"]
    narrow = type(kernel)(**{**kernel.__dict__, "head_dims": (64, 128)})
    monkeypatch.setitem(FORWARD_KERNELS, "naive_forward", narrow)
    q = np.zeros((1, 1, 4, 8), np.float32)
    with pytest.raises(ValueError, match="naive_forward takes head size d = 64, 128, not 8"):
        forward(q, q, q, device="sim")


# ---- what there is ----------------------------------------------------------------------------


def test_kernels_are_listed():
    assert "naive_forward" in list_kernels()
    for kernel in FORWARD_KERNELS.values():
        assert all((KERNEL_DIR / file.filename).is_file() for file in kernel.files)


def test_without_nvrtc_the_shipped_ptx_runs(no_nvrtc):
    KernelFile.kernel.cache_clear()  # forget what NVRTC compiled for the other tests
    q, k, v = problem_arrays(Nq=20, Nk=33, d=16)
    assert_exact(forward(q, k, v, device="sim"), truth(q, k, v))


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True])
def test_naive_forward_is_exact_on_the_gpu(gpu, causal):
    q, k, v = problem_arrays(batch=2, heads=4, kv_heads=2, Nq=100, Nk=130, d=64)
    assert_exact(forward(q, k, v, causal=causal, device="gpu"), truth(q, k, v, causal))


@pytest.mark.gpu
def test_the_simulators_sectors_are_the_gpus(gpu):
    q, k, v = problem_arrays(heads=2, Nq=100, Nk=130, d=64)
    problem = Attention.of(q, k, v, False, None)
    counts = {}
    for device in ("sim", "gpu"):
        o, lse = np.empty_like(q), np.empty(q.shape[:3], np.float32)
        with measure() as traffic:
            if device == "sim":
                naive_forward(q, k, v, o, lse, problem, device)
            else:
                forward(q, k, v, device=device)
        if traffic.not_measured:
            pytest.skip(traffic.not_measured)
        names = ("load_sectors", "store_sectors", "load_requests", "store_requests")
        counts[device] = [
            {name: getattr(kernel.totals, name) for name in names} for kernel in traffic.kernels
        ]
    assert counts["gpu"] == counts["sim"]
