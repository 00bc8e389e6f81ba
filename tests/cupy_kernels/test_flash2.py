"""FlashAttention-2 on tensor cores: exactness on the killers, traffic, registers, refusals."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from cupy_kernels import backward, flash2, flash2_steps, forward, measure
from cupy_kernels.attention import Attention, cdiv
from cupy_kernels.flash2 import BACKWARD_TILES, FORWARD_TILES
from cupy_kernels.resources import all_resources
from reference_numpy import oracle

FP16, BF16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
SECTOR = 32
EPS_FP32 = float(np.finfo(np.float32).eps)
STEPS = [step.kernel for step in flash2_steps.STEPS]


def fixtures(dtype, d, Nq, Nk, seed=0):
    """q, k, v, do of (1, fixtures, N, d): one head each, in the order of NAMES."""
    random = np.random.default_rng(seed)
    q, do = random.standard_normal((2, len(NAMES), Nq, d))
    k, v = random.standard_normal((2, len(NAMES), Nk, d))
    root = np.sqrt(64 / d)  # the same scores for every head size
    along = np.linspace(0, 1, Nk)[:, None]
    q[1], k[1] = root * (1 + 0.1 * q[1]), 3 * along + 0.1 * k[1]  # every tile brings a new maximum
    q[2], k[2] = root * (4 + 0.1 * q[2]), -4 + 0.1 * k[2]  # e^S underflows without the maximum
    v[3] = np.eye(Nk, d)  # O shows P itself
    q[4] *= 8 * root  # nearly one key a row
    return tuple(x[None].astype(dtype) for x in (q, k, v, do))


NAMES = ("normal", "rising", "deep_negative", "one_hot", "peaked")


def error(found, true):
    assert not np.isnan(found.astype(np.float64)).any()
    return np.abs(found.astype(np.float64) - true).max(axis=(-1, -2))


def assert_forward_exact(o, lse, q, k, v, causal):
    o_true, lse_true = oracle.attention(q, k, v, causal=causal)
    naive, _ = oracle.naive_forward(q, k, v, causal=causal)
    assert o.dtype == q.dtype and lse.dtype == np.float32
    assert (error(o, o_true) <= 2 * error(naive, o_true) + 1e-6).all()
    dead = np.isneginf(lse_true)
    np.testing.assert_array_equal(np.isneginf(lse), dead)
    assert (o[dead] == 0).all()
    # A tensor core cuts off what does not fit each time it adds 16 products to a score: up to one
    # unit in the last place, d / 16 times. From d = 256 on that outweighs the floor's 2 units.
    allowed = max(2, q.shape[-1] / 64) * oracle.lse_floor(q, k, causal=causal)
    assert np.abs(lse[~dead] - lse_true[~dead]).max(initial=0) <= allowed


def stored_o_floors(q, k, v, do, causal):
    """What the rounding of O alone does to dQ and dK: D = rowsum(dO ∘ O) is made of O as stored.

    D is off by up to u · rowsum|dO ∘ O| (u: half a unit in the last place), and with it
    dQ = scale · P (dP − D) K and dK. The naive kernel never stores O before it forms D.
    """
    unit = float(ml_dtypes.finfo(q.dtype).eps) / 2
    q, k, v, do = (x.astype(np.float64) for x in (q, k, v, do))
    scale = 1 / np.sqrt(q.shape[-1])
    s = scale * q @ k.swapaxes(-1, -2)
    o, lse = oracle.attention(q, k, v, causal=causal)
    seen = oracle.causal_mask(*s.shape[-2:]) if causal else np.ones(s.shape[-2:], bool)
    p = np.exp(np.where(seen, s - np.where(np.isneginf(lse), 0, lse)[..., None], -np.inf))
    off = unit * np.abs(do * o).sum(-1, keepdims=True)
    in_dk = ((p * off).swapaxes(-1, -2) @ np.abs(q)).sum(1)
    return {"dQ": scale * np.max(off * np.abs(p @ k)), "dK": scale * np.max(in_dk), "dV": 0.0}


def assert_gradients_exact(gradients, q, k, v, do, causal):
    """Each kv head by itself, with the query heads that share it."""
    true = oracle.attention_gradients(q, k, v, do, causal=causal)
    naive = oracle.naive_backward(q, k, v, do, causal=causal)
    group = q.shape[1] // k.shape[1]
    for kv_head in range(k.shape[1]):
        one, its = slice(kv_head, kv_head + 1), slice(kv_head * group, (kv_head + 1) * group)
        inputs = (q[:, its], k[:, one], v[:, one], do[:, its])
        floors = oracle.gradient_floors(*inputs, causal=causal, eps=EPS_FP32)
        stored_o = stored_o_floors(*inputs, causal)
        parts = zip(("dQ", "dK", "dV"), gradients, (its, one, one), strict=True)
        for name, found, heads in parts:
            expected = getattr(true, name)[:, heads]
            allowed = 3 * error(getattr(naive, name)[:, heads], expected)
            allowed = allowed + getattr(floors, name) + stored_o[name]
            assert (error(found[:, heads], expected) <= allowed).all(), (name, kv_head)


def both_ways(q, k, v, do, causal, device="sim"):
    """Forward and backward, both held to the exactness rule."""
    o, lse = forward(q, k, v, kernel="flash2_forward", causal=causal, device=device)
    assert_forward_exact(o, lse, q, k, v, causal)
    gradients = backward(q, k, v, o, lse, do, causal=causal, device=device)
    assert [g.shape for g in gradients] == [q.shape, k.shape, v.shape]
    assert_gradients_exact(gradients, q, k, v, do, causal)


# ---- exactness ------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [FP16, BF16], ids=str)
@pytest.mark.parametrize(("Nq", "Nk"), [(100, 200), (150, 70), (1, 130), (70, 1)])
def test_the_fixtures_are_exact(dtype, causal, Nq, Nk):
    """Ragged, Nq ≠ Nk, rows that see no key (causal, Nq > Nk), one row, one key."""
    both_ways(*fixtures(dtype, 64, Nq, Nk), causal)


@pytest.mark.parametrize("d", [32, 96, 128, 256])
@pytest.mark.parametrize("causal", [False, True])
def test_the_other_head_sizes_are_exact(d, causal):
    dtype = BF16 if causal else FP16
    both_ways(*(x[:, :2] for x in fixtures(dtype, d, 75, 140)), causal)


@pytest.mark.parametrize("causal", [False, True])
def test_query_heads_share_keys_and_values(causal):
    q, k, v, do = fixtures(FP16, 64, 70, 140)
    q, do = (np.concatenate([x[:, :3], x[:, :3]]) for x in (q, do))  # 2 batches, 3 heads
    k, v = (np.stack([x[0, :1], x[0, 4:]]) for x in (k, v))  # one kv head each, not the same
    both_ways(q, k, v, do, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", STEPS)
def test_every_step_of_the_ladder_is_exact(kernel, causal):
    q, k, v, _ = fixtures(BF16 if causal else FP16, 64, 70, 150)
    assert_forward_exact(*forward(q, k, v, kernel, causal, device="sim"), q, k, v, causal)


def test_the_scale_is_as_told():
    q, k, v, _ = (x[:, :1] for x in fixtures(FP16, 64, 40, 40))
    o, lse = forward(q, k, v, kernel="flash2_forward", scale=0.3, device="sim")
    o_true, lse_true = oracle.attention(q, k, v, scale=0.3)
    naive, _ = oracle.naive_forward(q, k, v, scale=0.3)
    assert (error(o, o_true) <= 2 * error(naive, o_true) + 1e-6).all()
    assert np.abs(lse - lse_true).max() < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [FP16, BF16], ids=str)
@pytest.mark.parametrize("d", [32, 64, 96, 128, 256])
@pytest.mark.parametrize(("Nq", "Nk"), [(100, 200), (150, 70), (129, 257), (1, 130), (70, 1)])
def test_every_fixture_is_exact_with_every_head_size(dtype, causal, d, Nq, Nk):
    both_ways(*fixtures(dtype, d, Nq, Nk), causal)


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [FP16, BF16], ids=str)
@pytest.mark.parametrize("d", [32, 64, 96, 128, 256])
@pytest.mark.parametrize(("Nq", "Nk"), [(100, 200), (150, 70), (513, 770), (1, 130), (70, 1)])
def test_the_fixtures_are_exact_on_the_gpu(gpu, dtype, causal, d, Nq, Nk):
    both_ways(*fixtures(dtype, d, Nq, Nk), causal, device="gpu")


# ---- traffic, in closed form ------------------------------------------------------------------


def measured(run):
    with measure() as traffic:
        result = run()
    return {kernel.kernel.partition("<")[0]: kernel for kernel in traffic.kernels}, result


@pytest.mark.parametrize("causal", [False, True])
def test_q_and_o_move_once_and_k_and_v_once_for_each_visited_tile(causal):
    N, d, tile = 300, 64, FORWARD_TILES[64]
    q, k, v, _ = (x[:, :2] for x in fixtures(FP16, d, N, N))
    run = lambda: forward(q, k, v, kernel="flash2_forward", causal=causal, device="sim")  # noqa: E731
    kernels, _ = measured(run)
    arrays = kernels["flash2_forward"].arrays
    row = d * 2 // SECTOR
    ends = [min(N, i + tile.Br) if causal else N for i in range(0, N, tile.Br)]
    visited = sum(min(N, cdiv(end, tile.Bc) * tile.Bc) for end in ends)
    assert arrays["q"].cp_async_sectors == 2 * N * row
    assert arrays["k"].cp_async_sectors == arrays["v"].cp_async_sectors == 2 * visited * row
    assert arrays["o"].store_sectors == 2 * N * row
    assert kernels["flash2_forward"].totals.load_sectors == 0
    assert kernels["flash2_forward"].totals.shared_conflicts == 0


def test_the_backward_adds_dq_in_full_sectors():
    N, d, tile = 200, 64, BACKWARD_TILES[64]
    q, k, v, do = (x[:, :1] for x in fixtures(FP16, d, N, N))
    o, lse = forward(q, k, v, kernel="flash2_forward", device="sim")
    kernels, _ = measured(lambda: backward(q, k, v, o, lse, do, device="sim"))
    arrays = kernels["flash2_backward"].arrays
    key_tiles, rows = cdiv(N, tile.Bc), cdiv(N, tile.Br) * tile.Br
    assert arrays["dq_sums"].atomic_sectors == key_tiles * rows * d * 4 // SECTOR
    assert arrays["k"].cp_async_sectors == arrays["v"].cp_async_sectors == N * d * 2 // SECTOR
    assert arrays["q"].cp_async_sectors == key_tiles * N * d * 2 // SECTOR
    assert arrays["dk"].store_sectors == arrays["dv"].store_sectors == N * d * 2 // SECTOR


def test_each_step_of_the_ladder_takes_load_off_shared_memory():
    q, k, v, _ = (x[:, :1] for x in fixtures(FP16, 64, 128, 128))
    totals = {}
    for kernel in (*STEPS, "flash2_forward"):
        kernels, _ = measured(lambda kernel=kernel: forward(q, k, v, kernel, device="sim"))
        totals[kernel] = kernels[kernel].totals
    wavefronts = [totals[kernel].shared_wavefronts for kernel in totals]
    plain, padded, swizzled, doubled, ldmatrix, last = wavefronts
    assert plain > 4 * padded
    assert padded == swizzled > doubled > ldmatrix > last
    conflicts = [totals[kernel].shared_conflicts for kernel in totals]
    assert conflicts[0] > 0 and not any(conflicts[1:])
    assert totals[STEPS[2]].load_sectors == totals[STEPS[3]].cp_async_sectors


def test_the_swizzle_needs_no_more_memory_than_the_tile():
    shared = {step.name: step.shared_bytes(64) for step in flash2_steps.STEPS}
    assert shared["3_swizzled"] == shared["1_shared"] == 3 * 64 * 64 * 2
    assert shared["2_padded"] == shared["1_shared"] * 72 // 64


# ---- registers ------------------------------------------------------------------------------


def assert_no_spills(files):
    for file in files:
        options = (file.source, file.options, "sm_90a", (file.name,), file.filename)
        (found,) = all_resources(*options).values()
        assert found.spill_store_bytes == found.spill_load_bytes == 0, file.name
        assert not found.warnings


@pytest.mark.parametrize(("d", "causal"), [(64, True), (128, False)])
def test_nothing_spills_at_the_benchmarked_head_sizes(d, causal):
    files = flash2.backward_files("bfloat16", d, causal)
    assert_no_spills([flash2.forward_file("bfloat16", d, causal), *files])


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("d", [64, 128])
def test_nothing_spills_in_any_instance(d, dtype, causal):
    files = [flash2.forward_file(dtype, d, causal), *flash2.backward_files(dtype, d, causal)]
    assert_no_spills([*files, *(step.file(dtype, d, causal) for step in flash2_steps.STEPS)])


# ---- what is refused, before any launch -------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"dtype": np.float32}, "flash2_forward takes float16 or bfloat16, not float32"),
        ({"d": 48}, "flash2_forward takes head size d = 32, 64, 96, 128, 256, not 48"),
        ({"scale": 0.0}, "scale is 0: the flash2 kernels need a scale above 0"),
        ({"scale": -1.0}, "scale is -1: the flash2 kernels need a scale above 0"),
    ],
)
def test_the_forward_refuses_in_one_line(monkeypatch, change, told):
    monkeypatch.setattr("cupy_kernels.simulated_kernel.SimulatedKernel.launch", None)
    case = {"dtype": np.float16, "d": 64, "scale": None} | change
    q = np.zeros((1, 1, 4, case["d"]), case["dtype"])
    with pytest.raises((TypeError, ValueError), match=told):
        forward(q, q, q, kernel="flash2_forward", scale=case["scale"], device="sim")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("o", np.zeros((1, 1, 5, 64), FP16), r"o is \(1, 1, 5, 64\), q asks for \(1, 1, 4, 64\)"),
        ("do", np.zeros((1, 1, 4, 64), np.float32), "do is float32, not float16"),
        ("lse", np.zeros((1, 1, 4), np.float64), "lse is float64, not float32"),
        ("lse", None, r"lse is NoneType, q asks for \(1, 1, 4\)"),
        ("kernel", "fast", "no kernel 'fast': one of .*flash2_backward"),
    ],
)
def test_the_backward_refuses_in_one_line(monkeypatch, name, value, told):
    monkeypatch.setattr("cupy_kernels.simulated_kernel.SimulatedKernel.launch", None)
    q = np.zeros((1, 1, 4, 64), FP16)
    arguments = dict.fromkeys(("q", "k", "v", "o", "do"), q) | {"lse": np.zeros((1, 1, 4), "f")}
    with pytest.raises((TypeError, ValueError), match=told):
        backward(**(arguments | {name: value}), device="sim")


def test_rows_beyond_32_bits_are_refused():
    q = np.zeros((1, 1, 8, 64), FP16)
    problem = replace(Attention.of(q, q, q, False, None), batch=2**20, Nk=2**11)
    with pytest.raises(ValueError, match=r"N is 2,147,483,648: the flash2 kernels count up to"):
        flash2.check(problem)


# ---- launches -------------------------------------------------------------------------------


def test_causal_blocks_start_with_the_longest_tiles_of_a_section():
    q = np.zeros((3, 4, 8, 64), FP16)
    causal = Attention.of(q, q, q, True, None)
    assert flash2.grid(causal, tiles=7, heads=4, bytes_a_head=1) == (12, 7, 1)
    assert flash2.grid(causal, 7, 4, flash2.SECTION_BYTES // 5) == (4, 7, 3), "a divisor of 12"
    assert flash2.grid(causal, 7, 4, 2 * flash2.SECTION_BYTES) == (1, 7, 12)
    assert flash2.grid(replace(causal, causal=False), 7, 4, 1) == (7, 12, 1)
