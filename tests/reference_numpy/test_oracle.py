"""The oracle is checked against definitions written differently, and against torch."""

import ml_dtypes
import numpy as np
import pytest

from reference_numpy.oracle import (
    attention,
    attention_gradients,
    gradient_floors,
    lse_floor,
    naive_backward,
    naive_forward,
)


def random(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def attention_row_by_row(q, k, v, causal, scale):
    """Softmax attention by its definition, one query at a time."""
    O, LSE = np.zeros((len(q), v.shape[1])), np.full(len(q), -np.inf)
    for i, query in enumerate(q):
        last = len(k) if not causal else max(0, i + len(k) - len(q) + 1)
        if last:
            s = np.array([scale * sum(query * key) for key in k[:last]])
            LSE[i] = np.log(np.sum(np.exp(s)))
            O[i] = sum(np.exp(s_j - LSE[i]) * v_j for s_j, v_j in zip(s, v[:last], strict=True))
    return O, LSE


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("Nq", "Nk"), [(9, 9), (4, 11), (11, 4), (1, 6), (5, 1)])
def test_attention_is_its_definition(Nq, Nk, causal):
    q, k, v = random(Nq, 8), random(Nk, 8, seed=1), random(Nk, 8, seed=2)
    O, LSE = attention(q, k, v, causal=causal, scale=0.3)
    want_O, want_LSE = attention_row_by_row(q, k, v, causal, 0.3)
    np.testing.assert_allclose(O, want_O, atol=1e-12)
    np.testing.assert_allclose(LSE, want_LSE, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("heads", "kv_heads", "Nq", "Nk"), [(2, 2, 5, 7), (4, 2, 6, 4), (3, 1, 5, 5)]
)
def test_gradients_are_central_differences(heads, kv_heads, Nq, Nk, causal):
    q, do = random(2, heads, Nq, 4), random(2, heads, Nq, 4, seed=3)
    k, v = random(2, kv_heads, Nk, 4, seed=1), random(2, kv_heads, Nk, 4, seed=2)
    grads = attention_gradients(q, k, v, do, causal=causal)

    def loss(q, k, v):
        return float((attention(q, k, v, causal=causal)[0] * do).sum())

    h, rng = 1e-5, np.random.default_rng(5)
    for position, (name, x) in enumerate((("dQ", q), ("dK", k), ("dV", v))):
        for _ in range(6):
            at = tuple(rng.integers(n) for n in x.shape)
            step = np.zeros_like(x)
            step[at] = h
            moved = [[q, k, v], [q, k, v]]
            moved[0][position], moved[1][position] = x + step, x - step
            numeric = (loss(*moved[0]) - loss(*moved[1])) / (2 * h)
            assert getattr(grads, name)[at] == pytest.approx(numeric, abs=1e-7)


def test_a_query_without_keys_gives_zero():
    q, k, v, do = random(5, 4), random(2, 4), random(2, 4), random(5, 4)
    O, LSE = attention(q, k, v, causal=True)
    assert np.all(O[:3] == 0) and np.all(np.isneginf(LSE[:3]))
    assert np.all(attention_gradients(q, k, v, do, causal=True).dQ[:3] == 0)
    assert np.isfinite(gradient_floors(q, k, v, do, causal=True, eps=1e-7).dQ)
    assert np.isfinite(lse_floor(q, k, causal=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_naive_kernels_round_to_their_dtype(dtype):
    q, k, v, do = (random(24, 16, seed=s).astype(dtype) for s in range(4))
    O, LSE = naive_forward(q, k, v)
    truth, _ = attention(q, k, v)
    assert O.dtype == dtype and LSE.dtype == np.float32
    eps = float(ml_dtypes.finfo(dtype).eps)
    error = np.abs(O.astype(np.float64) - truth).max()
    assert 0 < error < 8 * eps
    assert naive_backward(q, k, v, do).dQ.dtype == dtype


def test_heads_that_cannot_be_shared_are_refused():
    with pytest.raises(ValueError, match="3 query heads cannot share 2"):
        attention(random(3, 4, 8), random(2, 4, 8), random(2, 4, 8))


@pytest.mark.parametrize("causal", [False, True])
def test_torch_agrees(causal):
    torch = pytest.importorskip("torch", reason="torch is a second oracle, not a requirement")
    q, k, v, do = (random(2, 3, 10, 8, seed=s) for s in range(4))
    tensors = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    O = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)
    O.backward(torch.tensor(do))
    grads = attention_gradients(q, k, v, do, causal=causal)
    np.testing.assert_allclose(attention(q, k, v, causal=causal)[0], O.detach(), atol=1e-12)
    for tensor, got in zip(tensors, (grads.dQ, grads.dK, grads.dV), strict=True):
        np.testing.assert_allclose(got, tensor.grad, atol=1e-12)


def test_floors_do_not_ask_for_the_sign_of_scale():
    q, k, v, do = (random(6, 4, seed=s) for s in range(4))
    up, down = (gradient_floors(q, k, v, do, scale=scale, eps=1e-7) for scale in (0.3, -0.3))
    assert min(down.dQ, down.dK, down.dV) > 0
    # Not equal, since −scale is another softmax, but of the same size.
    assert 0.2 < down.dV / up.dV < 5
    assert lse_floor(q, k, scale=-0.3) > 0
