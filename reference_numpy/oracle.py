"""The truth every kernel is judged by: attention in float64, and the naive kernels beside it.

Shapes are (..., N, d); with (batch, heads, N, d) k and v may have fewer heads that divide the
query heads (query head h uses kv head h // group). A causal mask is aligned bottom-right. A
query that sees no key has O = 0, LSE = −∞ and gradients 0.

A kernel may err as much as a naive kernel of the same dtypes does, times 2 (gradients: times 3),
plus a floor. `naive_forward` and `naive_backward` are those naive kernels; `gradient_floors`
are the floors, from the sums of absolute values that the rounding errors act on.
"""

from dataclasses import dataclass

import numpy as np

EPS_FP32 = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Gradients:
    """dQ (..., Nq, d), dK and dV (..., Nk, d)."""

    dQ: np.ndarray
    dK: np.ndarray
    dV: np.ndarray


def causal_mask(Nq: int, Nk: int) -> np.ndarray:
    """True where query i may see key j: j ≤ i + Nk − Nq; shape (Nq, Nk)."""
    return np.arange(Nk)[None, :] <= np.arange(Nq)[:, None] + (Nk - Nq)


def attention(q, k, v, *, causal=False, scale=None) -> tuple[np.ndarray, np.ndarray]:
    """O (..., Nq, d) and LSE (..., Nq) in float64; `scale=None` means 1/√d."""
    q, k, v = (_as(x, np.float64) for x in (q, k, v))
    k, v = _repeat_kv(k, q), _repeat_kv(v, q)
    p, lse = _softmax(_scores(q, k, causal, scale))
    return p @ v, lse


def attention_gradients(q, k, v, do, *, causal=False, scale=None) -> Gradients:
    """Gradients of sum(O ∘ dO) in float64, for do of the shape of O."""
    return _backward(q, k, v, do, causal, scale, np.float64, lambda x: x)


def naive_forward(q, k, v, *, causal=False, scale=None) -> tuple[np.ndarray, np.ndarray]:
    """The three-kernel forward pass in the dtype of q: fp32 sums, P and O rounded to that dtype.

    Returns O in the dtype of q and LSE in float32.
    """
    dtype = np.asarray(q).dtype
    q, k, v = (_as(x, np.float32) for x in (q, k, v))
    k, v = _repeat_kv(k, q), _repeat_kv(v, q)
    p, lse = _softmax(_scores(q, k, causal, scale))
    o = _rounded(p, dtype) @ v
    return o.astype(dtype), lse.astype(np.float32)


def naive_backward(q, k, v, do, *, causal=False, scale=None) -> Gradients:
    """The standard backward pass in the dtype of q: fp32 sums, P, dS and results rounded to it.

    Source: FlashAttention, Algorithm 3.
    """
    dtype = np.asarray(q).dtype
    grads = _backward(q, k, v, do, causal, scale, np.float32, lambda x: _rounded(x, dtype))
    return Gradients(*(g.astype(dtype) for g in (grads.dQ, grads.dK, grads.dV)))


def lse_floor(q, k, *, causal=False, scale=None, eps=EPS_FP32) -> float:
    """Error of LSE that rounding the scores alone explains: 2·eps·max(|Q||K|ᵀ·|scale| + |LSE|)."""
    q, k = _as(q, np.float64), _as(k, np.float64)
    k = _repeat_kv(k, q)
    weight = _rounding_weight(q, k, causal, scale)
    seen = _visible(q, k, causal)
    return 2 * float(eps) * float(np.max(np.where(seen, weight, 0), initial=1.0))


def gradient_floors(q, k, v, do, *, causal=False, scale=None, eps) -> Gradients:
    """Floors for the errors of dQ, dK, dV (three floats), for a kernel of precision `eps`.

    A kernel that recomputes P = e^(S − LSE) errs relatively by eps·W with
    W = 1 + |Q||K|ᵀ·|scale| + |LSE|: correct recomputation fails a rule that forgets it. Each floor
    is 2·eps times the largest entry of the gradient's formula over absolute values.
    """
    q, k, v, do = (_as(x, np.float64) for x in (q, k, v, do))
    heads = k.shape
    k, v = _repeat_kv(k, q), _repeat_kv(v, q)
    scale = _scale(q, scale)
    p, _ = _softmax(_scores(q, k, causal, scale))
    pw = p * np.where(_visible(q, k, causal), _rounding_weight(q, k, causal, scale), 0)
    row = np.abs(do * (p @ v)).sum(axis=-1, keepdims=True)
    ds = pw * (np.abs(do) @ _t(np.abs(v)) + row)
    largest = (
        ds @ np.abs(k) * abs(scale),
        _sum_groups(_t(ds) @ np.abs(q) * abs(scale), heads),
        _sum_groups(_t(pw) @ np.abs(do), heads),
    )
    return Gradients(*(2 * float(eps) * float(np.max(x, initial=0.0)) for x in largest))


def _backward(q, k, v, do, causal, scale, dtype, rounded) -> Gradients:
    q, k, v, do = (_as(x, dtype) for x in (q, k, v, do))
    heads = k.shape
    k, v = _repeat_kv(k, q), _repeat_kv(v, q)
    scale = _scale(q, scale)
    p, _ = _softmax(_scores(q, k, causal, scale))
    dp = do @ _t(v)
    ds = rounded(p * (dp - (p * dp).sum(axis=-1, keepdims=True)))
    return Gradients(
        dQ=scale * (ds @ k),
        dK=_sum_groups(scale * (_t(ds) @ q), heads),
        dV=_sum_groups(_t(rounded(p)) @ do, heads),
    )


def _scores(q, k, causal, scale) -> np.ndarray:
    s = _scale(q, scale) * (q @ _t(k))
    return np.where(_visible(q, k, causal), s, -np.inf) if causal else s


def _softmax(s) -> tuple[np.ndarray, np.ndarray]:
    m = s.max(axis=-1, keepdims=True, initial=-np.inf)
    p = np.exp(s - np.where(m == -np.inf, s.dtype.type(0), m))
    l = p.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (m + np.log(l))[..., 0]
    return p / np.where(l == 0, s.dtype.type(1), l), lse


def _rounding_weight(q, k, causal, scale) -> np.ndarray:
    _, lse = _softmax(_scores(q, k, causal, scale))
    return 1 + abs(_scale(q, scale)) * (np.abs(q) @ _t(np.abs(k))) + np.abs(lse)[..., None]


def _visible(q, k, causal) -> np.ndarray:
    Nq, Nk = q.shape[-2], k.shape[-2]
    return causal_mask(Nq, Nk) if causal else np.ones((Nq, Nk), bool)


def _scale(q, scale):
    return q.dtype.type(q.shape[-1] ** -0.5 if scale is None else scale)


def _as(x, dtype) -> np.ndarray:
    return np.asarray(x).astype(dtype)


def _rounded(x, dtype) -> np.ndarray:
    return x.astype(dtype).astype(x.dtype)


def _t(x) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


def _repeat_kv(x, q) -> np.ndarray:
    if x.ndim < 3 or x.shape[-3] == q.shape[-3]:
        return x
    if q.shape[-3] % x.shape[-3]:
        raise ValueError(f"{q.shape[-3]} query heads cannot share {x.shape[-3]} key/value heads")
    return np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3)


def _sum_groups(x, shape) -> np.ndarray:
    if x.shape == shape:
        return x
    *batch, _, N, d = x.shape
    return x.reshape(*batch, shape[-3], -1, N, d).sum(axis=-3)
