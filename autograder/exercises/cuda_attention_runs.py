"""What the three kernels of naive attention are tried on: scores, softmax, weighted sum."""

from collections.abc import Iterator

import numpy as np

from autograder.exactness import FORWARD_FLOOR
from autograder.exercise import Tier
from autograder.exercises.cuda_cases import Run, Slot, compulsory, once
from autograder.fixtures import fixture, generator, standard_normal
from reference_numpy.oracle import EPS_FP32, causal_mask
from reference_numpy.tiling import cdiv

LSE_INVARIANT = "the LSE of every row is saved: m + ln l"


# ---- cuda_scores -------------------------------------------------------------------------------


def scores_runs(tier: Tier, seed: int) -> Iterator[Run]:
    """Four fixtures as four heads; ragged lengths with shared K; a mask that is not square."""
    yield _scores_run(
        {
            "normal": ("equals scale · Q Kᵀ", *_rows_of("normal", seed, 64, 96)),
            "rising": ("exact for large scores", *_rows_of("rising", seed, 64, 96)),
            "deep_negative": (
                "exact for negative scores",
                *_rows_of("deep_negative", seed, 64, 96),
            ),
            "numbered": ("every score lands on its own place", *_numbered(64, 96, 64)),
        }
    )
    yield _scores_stack("ragged", "lengths need not be multiples of the tile", seed, 37, 51, 40)
    yield _scores_stack(
        "causal", "the causal mask is aligned bottom-right", seed, 45, 29, 32, causal=1
    )
    if tier is Tier.FULL:
        yield _scores_stack("one_row", "a single query works", seed, 1, 100, 64)
        yield _scores_stack("one_key", "a single key works", seed, 19, 1, 64)
        yield _scores_stack("long", "equals scale · Q Kᵀ at N = 200", seed, 200, 200, 64)
        yield _scores_stack(
            "causal_more_keys", "causal with more keys than queries", seed, 40, 104, 64, causal=1
        )


def _rows_of(name: str, seed: int, Nq: int, Nk: int) -> tuple[np.ndarray, np.ndarray]:
    """Q and K of the attention fixture `name`: as many rows as asked, or more normal ones."""
    fx = fixture(name, seed)
    more = standard_normal(seed, name, max(0, Nk - len(fx.K)), fx.K.shape[1])
    return fx.Q[:Nq], np.concatenate([fx.K, more])[:Nk]


def _numbered(Nq: int, Nk: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Query i picks column i of K, and K[j, c] = j + c/64: each score tells its row and column."""
    K = np.arange(Nk)[:, None] + np.arange(d)[None, :] / 64
    return np.eye(Nq, d, dtype=np.float32), K.astype(np.float32)


def _scores_run(heads: dict[str, tuple]) -> Run:
    """One launch, batch 1: each fixture (invariant, Q, K) is a head with keys of its own."""
    slots = [Slot(name, heads[name][0], (0, h)) for h, name in enumerate(heads)]
    q, k = (np.stack([head[which] for head in heads.values()])[None] for which in (1, 2))
    return _scores_launch(tuple(slots), q, k, 0)


def _scores_stack(name: str, invariant: str, seed: int, Nq, Nk, d, *, causal=0) -> Run:
    """One fixture, batch 2, two query heads that share one head of keys."""
    q, k = (
        standard_normal(seed, name + "q", 2, 2, Nq, d),
        standard_normal(seed, name + "k", 2, 1, Nk, d),
    )
    return _scores_launch((Slot(name, invariant),), q, k, causal)


def _scores_launch(slots: tuple[Slot, ...], q: np.ndarray, k: np.ndarray, causal: int) -> Run:
    (batch, heads, Nq, d), (_, kv_heads, Nk, _) = q.shape, k.shape
    scale = float(np.float32(d**-0.5))
    repeated = np.repeat(k, heads // kv_heads, axis=1)
    seen = causal_mask(Nq, Nk) if causal else np.ones((Nq, Nk), bool)
    truth = scale * (q.astype(np.float64) @ repeated.astype(np.float64).swapaxes(2, 3))
    plain = np.float32(scale) * _dot_products(q, repeated)
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "Nq": Nq, "Nk": Nk, "d": d}
    dots = batch * heads * Nq * d
    rows_seen = batch * heads * int(seen.any(axis=1).sum()) * d
    return Run(
        slots=slots,
        values={"q": q, "k": k, **sizes, "scale": scale, "causal": causal},
        truth={"s": _masked(truth, seen)},
        naive={"s": _masked(plain, seen)},
        reads={
            "q": (compulsory(rows_seen), 32 * dots * cdiv(Nk, 32)),
            "k": (compulsory(k.size), 32 * dots * Nk),
        },
        writes={"s": (compulsory(plain.size), once(batch * heads * Nq, Nk))},
        mistakes=lambda: _score_mistakes(plain, seen, causal, scale, q, repeated),
    )


def _dot_products(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Q Kᵀ in fp32, column by column as a plain loop adds up."""
    sums = np.zeros((*q.shape[:3], k.shape[2]), np.float32)
    for c in range(q.shape[3]):
        sums += q[..., c, None] * k[..., None, :, c]
    return sums


def _masked(s: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return np.where(seen, s, s.dtype.type(-np.inf))


def _score_mistakes(plain, seen, causal, scale, q, k) -> dict[str, dict[str, np.ndarray]]:
    Nq, Nk = seen.shape
    i, j = np.arange(Nq)[:, None], np.arange(Nk)[None, :]
    wrong = {
        "the scores are not multiplied by scale": _masked(plain / np.float32(scale), seen),
        "the scores are multiplied by scale twice": _masked(plain * np.float32(scale), seen),
        "the last column of Q and K is left out": _masked(
            np.float32(scale) * _dot_products(q[..., :-1], k[..., :-1]), seen
        ),
    }
    if Nq == Nk:
        wrong["rows and columns are exchanged"] = _masked(plain.swapaxes(2, 3), seen)
    if causal:
        wrong |= {
            "the causal mask is not applied": plain,
            "the causal mask hides the diagonal: keys j ≤ i + Nk − Nq are visible": _masked(
                plain, j < i + Nk - Nq
            ),
            "the causal mask shows one key too many": _masked(plain, j <= i + Nk - Nq + 1),
            "the causal mask is aligned top-left: compare j with i + Nk − Nq": _masked(
                plain, j <= i
            ),
            "masked scores are 0, not −∞": np.where(seen, plain, np.float32(0)),
        }
    return {text: {"s": s} for text, s in wrong.items()}


# ---- cuda_softmax ------------------------------------------------------------------------------


def softmax_runs(tier: Tier, seed: int) -> Iterator[Run]:
    """Rows of every kind in one launch, four of each; ragged rows; one key."""
    yield _softmax_run(seed, 128, _row_kinds(seed, 128))
    ragged = {
        "ragged": (
            "the row need not be a multiple of the block",
            standard_normal(seed, "r", 6, 213),
        )
    }
    yield _softmax_run(seed, 213, ragged)
    few = {"short_rows": ("rows shorter than a warp work", 3 * standard_normal(seed, "f", 6, 7))}
    yield _softmax_run(seed, 7, few)
    if tier is Tier.FULL:
        yield _softmax_run(
            seed, 1, {"one_key": ("a single key works", standard_normal(seed, "o", 6, 1))}
        )
        long = {"long": ("equals softmax for long rows", 2 * standard_normal(seed, "l", 8, 3001))}
        yield _softmax_run(seed, 3001, long)


def _row_kinds(seed: int, Nk: int) -> dict[str, tuple[str, np.ndarray]]:
    z = standard_normal(seed, "rows", 4, 4, Nk)
    masked = z[3].copy()
    masked[0], masked[1, 1:], masked[2, :40] = -np.inf, -np.inf, -np.inf
    j = np.arange(Nk, dtype=np.float32)
    one_hot = np.where(j == 7 + 31 * np.arange(4)[:, None], np.float32(0), np.float32(-200))
    return {
        "normal": ("equals softmax in float64", z[0]),
        "rising": ("stable when scores are large", 1.9 * j + z[1]),
        "deep_negative": ("stable when all scores are very negative", z[2] - 300),
        "masked_rows": ("a row that sees no key gives P = 0 and LSE = −∞", masked),
        "one_hot": ("every weight lands on its own key", one_hot),
    }


def _softmax_run(seed: int, Nk: int, kinds: dict[str, tuple[str, np.ndarray]]) -> Run:
    s = np.concatenate([rows for _, rows in kinds.values()]).astype(np.float32)
    starts = np.cumsum([0] + [len(rows) for _, rows in kinds.values()])
    slots = tuple(
        Slot(name, kinds[name][0], slice(start, start + len(kinds[name][1])))
        for name, start in zip(kinds, starts, strict=False)
    )
    rows = len(s)
    truth, naive = _softmax(s.astype(np.float64)), _softmax(s)
    largest = np.abs(s[np.isfinite(s)]).max()
    return Run(
        slots=slots,
        values={"s": s, "Nk": Nk, "rows": rows},
        truth=truth,
        naive=naive,
        reads={"s": (compulsory(s.size), 3 * once(rows, Nk))},
        writes={
            "p": (compulsory(s.size), once(rows, Nk)),
            "lse": (compulsory(rows), 32 * rows),
        },
        floors={"lse": FORWARD_FLOOR + 2 * EPS_FP32 * float(largest)},
        invariants={"lse": LSE_INVARIANT},
        mistakes=lambda: _softmax_mistakes(s),
    )


def _softmax(s: np.ndarray) -> dict[str, np.ndarray]:
    m = s.max(axis=1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(m), 0, m))
    l = e.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.where(l > 0, m + np.log(l), -np.inf)[:, 0]
    return {"p": e / np.where(l > 0, l, 1), "lse": lse.astype(s.dtype)}


def _softmax_mistakes(s: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    right = _softmax(s)
    with np.errstate(all="ignore"):
        m = s.max(axis=1, keepdims=True)
        shift = np.where(np.isneginf(m), np.float32(0), m)
        e, unshifted = np.exp(s - shift), np.exp(s)
        from_zero = np.exp(s - np.maximum(m, 0))
        l = e.sum(axis=1, keepdims=True)
        lse = {
            "only m is stored: LSE = m + ln l": m,
            "only ln l is stored: LSE = m + ln l": np.log(l),
            "the logarithm is to base 2: LSE uses the natural one": m + np.log2(l),
        }
        p = {
            "the maximum is not subtracted before exp, so exp overflows or underflows": unshifted
            / unshifted.sum(axis=1, keepdims=True),
            "the maximum is not subtracted before exp: it overflows or underflows": unshifted
            * np.where((t := unshifted.sum(axis=1, keepdims=True)) > 0, 1 / t, 0),
            "m starts at 0 instead of −∞, so very negative scores all underflow": from_zero
            * np.where((t := from_zero.sum(axis=1, keepdims=True)) > 0, 1 / t, 0),
            "P is not divided by l": e,
            "P is multiplied by l instead of divided": e * l,
            "a row with no visible key gives NaN: −∞ − (−∞), or a division by l = 0": e * (1 / l),
        }
    outputs = {text: {"p": wrong} for text, wrong in p.items()}
    return outputs | {text: {"lse": wrong[:, 0], "p": right["p"]} for text, wrong in lse.items()}


# ---- cuda_weighted_sum -------------------------------------------------------------------------


def weighted_sum_runs(tier: Tier, seed: int) -> Iterator[Run]:
    """Three fixtures as three heads; ragged lengths with shared V; a single query."""
    normal = _softmax(2 * standard_normal(seed, "weights", 64, 64))["p"]
    order = generator(seed, "order").permutation(64)
    V = standard_normal(seed, "values", 2, 64, 64)
    yield _weighted_sum_launch(
        (
            Slot("normal", "equals P V", (0, 0)),
            Slot("one_hot_values", "every weight lands on its own key", (0, 1)),
            Slot("permutation", "every row of V lands in its own row", (0, 2)),
        ),
        np.stack([normal, normal, np.eye(64, dtype=np.float32)[order]])[None],
        np.stack([V[0], np.eye(64, dtype=np.float32), V[1]])[None],
    )
    yield _weighted_sum_stack(
        "ragged", "lengths need not be multiples of the tile", seed, 37, 51, 40
    )
    yield _weighted_sum_stack("one_row", "a single query works", seed, 1, 100, 64)
    if tier is Tier.FULL:
        yield _weighted_sum_stack("one_key", "a single key works", seed, 19, 1, 64)
        yield _weighted_sum_stack("long", "equals P V at N = 200", seed, 200, 200, 64)


def _weighted_sum_stack(name: str, invariant: str, seed: int, Nq: int, Nk: int, d: int) -> Run:
    """One fixture, batch 2, two query heads that share one head of values."""
    p = _softmax(standard_normal(seed, name + "p", 4 * Nq, Nk))["p"].reshape(2, 2, Nq, Nk)
    return _weighted_sum_launch(
        (Slot(name, invariant),), p, standard_normal(seed, name, 2, 1, Nk, d)
    )


def _weighted_sum_launch(slots: tuple[Slot, ...], p: np.ndarray, v: np.ndarray) -> Run:
    (batch, heads, Nq, Nk), (_, kv_heads, _, d) = p.shape, v.shape
    repeated = np.repeat(v, heads // kv_heads, axis=1)
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "Nq": Nq, "Nk": Nk, "d": d}
    rows = batch * heads * Nq
    return Run(
        slots=slots,
        values={"p": p, "v": v, **sizes},
        truth={"o": p.astype(np.float64) @ repeated.astype(np.float64)},
        naive={"o": _weighted_sum(p, repeated)},
        reads={
            "p": (compulsory(p.size), 32 * rows * Nk * cdiv(d, 32)),
            "v": (compulsory(v.size), rows * once(Nk, d)),
        },
        writes={"o": (compulsory(rows * d), once(rows, d))},
        mistakes=lambda: {
            "the last key is left out": {"o": _weighted_sum(p[..., :-1], repeated[:, :, :-1])},
            "the first key is left out": {"o": _weighted_sum(p[..., 1:], repeated[:, :, 1:])},
            **_exchanged(p, repeated),
        },
    )


def _exchanged(p: np.ndarray, v: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    if p.shape[2] != p.shape[3]:
        return {}
    text = "row and column of P are exchanged: query i's weights are p[i, :]"
    return {text: {"o": _weighted_sum(p.swapaxes(2, 3), v)}}


def _weighted_sum(p: np.ndarray, v: np.ndarray) -> np.ndarray:
    """P V in fp32, key by key as a plain loop adds up."""
    o = np.zeros((*p.shape[:3], v.shape[3]), np.float32)
    for j in range(p.shape[3]):
        o += p[..., j, None] * v[..., j, None, :]
    return o
