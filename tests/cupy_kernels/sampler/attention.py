"""Whole kernels beside the card: the course's three naive ones, FlashAttention-1 and -2, a GEMM.

Summation orders and exponentials differ between the places, so values have an absolute tolerance;
the counters are compared as strictly as those of the small kernels.
"""

from pathlib import Path

import numpy as np

from cupy_kernels import naive_forward
from tests.cupy_kernels.bugs import correct

from .case import Case

COURSE = Path(naive_forward.__file__).parent
HEADS, N, d = 2, 130, 64


def _qkv():
    rng = np.random.default_rng(0)
    return (rng.standard_normal((1, HEADS, N, d)).astype(np.float32) for _ in range(3))


def _softmax(S):
    P = np.exp(S - S.max(-1, keepdims=True), dtype=np.float64)
    return P / P.sum(-1, keepdims=True)


def naive_scores(rng):
    """S = Q Kᵀ / √d."""
    q, k, _ = _qkv()
    expected = q.astype(np.float64) @ k.swapaxes(-1, -2) / np.sqrt(d)
    sizes = {"heads": HEADS, "kv_heads": HEADS, "Nq": N, "Nk": N, "d": d}
    sizes = {name: np.int32(size) for name, size in sizes.items()}
    sizes |= {"scale": np.float32(d**-0.5), "causal": np.int32(0)}
    return {"q": q, "k": k, "s": np.zeros((1, HEADS, N, N), np.float32), **sizes}, {"s": expected}


def naive_softmax(rng):
    """P = softmax(S) and its log-sum-exp."""
    S = rng.standard_normal((HEADS * N, N)).astype(np.float32) * 3
    lse = S.max(-1) + np.log(np.exp(S - S.max(-1, keepdims=True), dtype=np.float64).sum(-1))
    outputs = {"p": np.zeros_like(S), "lse": np.zeros(len(S), np.float32)}
    return {"s": S, **outputs, "Nk": np.int32(N)}, {"p": _softmax(S), "lse": lse}


def naive_weighted_sum(rng):
    """O = P V."""
    _, _, v = _qkv()
    P = _softmax(rng.standard_normal((1, HEADS, N, N))).astype(np.float32)
    sizes = {"heads": HEADS, "kv_heads": HEADS, "Nq": N, "Nk": N, "d": d}
    sizes = {name: np.int32(size) for name, size in sizes.items()}
    return {"p": P, "v": v, "o": np.zeros_like(v), **sizes}, {"o": P.astype(np.float64) @ v}


def _course_case(build, grid, block, outputs):
    name = build.__name__
    absolute = dict.fromkeys(outputs, 1e-5)
    return Case(name, build, grid, block, name, absolute=absolute, folder=COURSE)


def _correct_case(name, **size):
    launch = correct.LAUNCHES[name](**size)

    def build(rng):
        fresh = correct.LAUNCHES[name](**size)
        return fresh.arguments, fresh.expected

    absolute = dict.fromkeys(launch.expected, launch.tolerance)
    grid, block = launch.grid, launch.block
    return Case(name, build, grid, block, name, absolute=absolute, folder=correct.KERNELS)


_ROWS = -(-N // naive_forward.ROWS)
_PRODUCT_BLOCK = (naive_forward.COLUMNS, naive_forward.ROWS)
_CASES = (
    _course_case(naive_scores, (-(-N // naive_forward.COLUMNS), _ROWS, HEADS), _PRODUCT_BLOCK, "s"),
    _course_case(naive_softmax, (HEADS * N,), (naive_forward.SOFTMAX_THREADS,), ("p", "lse")),
    _course_case(
        naive_weighted_sum, (-(-d // naive_forward.COLUMNS), _ROWS, HEADS), _PRODUCT_BLOCK, "o"
    ),
    _correct_case("vadd"),
    _correct_case("softmax_rows"),
    _correct_case("gemm"),
    _correct_case("block_sums"),
    _correct_case("stencil"),
    _correct_case("flash1", N=130, heads=2),
    _correct_case("flash2", N=256, heads=2),
)
ATTENTION = {case.name: case for case in _CASES}
