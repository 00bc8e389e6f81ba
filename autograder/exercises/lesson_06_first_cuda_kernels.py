"""Lesson 06: first kernels in CUDA, up to the three of naive attention."""

from collections.abc import Iterator

import numpy as np

from autograder.exactness import FORWARD_FLOOR
from autograder.exercise import Tier
from autograder.exercises.cuda_cases import (
    WAVEFRONT,
    Run,
    Slot,
    compulsory,
    cuda_exercise,
    once,
)
from autograder.fixtures import fixture
from reference_numpy.oracle import EPS_FP32, causal_mask
from reference_numpy.tiling import cdiv

LSE_INVARIANT = "the LSE of every row is saved: m + ln l"


def _rng(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, *name.encode()])


def _normal(seed: int, name: str, *shape: int) -> np.ndarray:
    return _rng(seed, name).standard_normal(shape).astype(np.float32)


# ---- cuda_add ----------------------------------------------------------------------------------

ADD_SIZES = {
    "normal": (1024, "equals x + y"),
    "ragged": (1003, "n need not be a multiple of the block"),
    "one_element": (1, "a single element works"),
}
ADD_LONG = {"long": (100_003, "equals x + y for many blocks")}


def add_runs(tier: Tier, seed: int) -> Iterator[Run]:
    """Lengths that fit the block and lengths that do not."""
    for name, (n, invariant) in (ADD_SIZES | (ADD_LONG if tier is Tier.FULL else {})).items():
        x, y = _normal(seed, name, 2, n)
        yield Run(
            slots=(Slot(name, invariant),),
            values={"x": x, "y": y, "n": n},
            truth={"z": x.astype(np.float64) + y},
            naive={"z": x + y},
            reads=dict.fromkeys("xy", (compulsory(n), once(1, n))),
            writes={"z": (compulsory(n), once(1, n))},
            mistakes=lambda x=x, y=y: {
                "x alone is stored": {"z": x},
                "y alone is stored": {"z": y},
                "y is subtracted": {"z": x - y},
            },
        )


# ---- cuda_transpose ----------------------------------------------------------------------------

TRANSPOSE_SHAPES = {
    "normal": (64, 96, "equals the transpose of X"),
    "numbered": (45, 70, "every element lands on its own place, at the ragged edges too"),
    "one_column": (33, 1, "a single column works"),
}
TRANSPOSE_LARGE = {
    "large": (300, 517, "equals the transpose of X for many tiles"),
    "one_row": (1, 130, "a single row works"),
}


def transpose_runs(tier: Tier, seed: int) -> Iterator[Run]:
    """`numbered` holds each element's own place, so a wrong one tells where it came from."""
    shapes = TRANSPOSE_SHAPES | (TRANSPOSE_LARGE if tier is Tier.FULL else {})
    for name, (rows, columns, invariant) in shapes.items():
        x = _normal(seed, name, rows, columns)
        if name == "numbered":
            x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        size = compulsory(x.size)
        yield Run(
            slots=(Slot(name, invariant),),
            values={"x": x, "rows": rows, "columns": columns},
            truth={"y": x.T.astype(np.float64)},
            naive={"y": x.T},
            reads={"x": (size, once(rows, columns))},
            writes={"y": (size, once(columns, rows))},
            shared_most=WAVEFRONT * (rows * cdiv(columns, 32) + columns * cdiv(rows, 32)),
            mistakes=lambda x=x: {
                "x is copied, not turned": {"y": x.reshape(x.shape[::-1])},
                "every tile lands in its place but is not turned inside": {"y": _unturned(x)},
            },
        )


def _unturned(x: np.ndarray) -> np.ndarray:
    """x transposed tile by tile, each tile left as it is inside; NaN where it sticks out."""
    rows, columns = x.shape
    padded = np.pad(x, ((0, -rows % 32), (0, -columns % 32)), constant_values=np.nan)
    tiles = padded.reshape(len(padded) // 32, 32, -1, 32).transpose(2, 1, 0, 3)
    return tiles.reshape(padded.shape[::-1])[:columns, :rows]


# ---- cuda_row_sum ------------------------------------------------------------------------------

ROW_SUM_SHAPES = {
    "normal": (8, 256, "equals the sum of each row"),
    "ragged": (5, 301, "n need not be a multiple of the block"),
    "short_rows": (3, 5, "rows shorter than the block work"),
}
ROW_SUM_LARGE = {
    "long_rows": (16, 5000, "equals the sum of each row of many elements"),
    "one_element": (4, 1, "rows of one element work"),
}


def row_sum_runs(tier: Tier, seed: int) -> Iterator[Run]:
    """Rows longer and shorter than a block."""
    shapes = ROW_SUM_SHAPES | (ROW_SUM_LARGE if tier is Tier.FULL else {})
    for name, (rows, n, invariant) in shapes.items():
        x = _normal(seed, name, rows, n)
        yield Run(
            slots=(Slot(name, invariant),),
            values={"x": x, "rows": rows, "n": n},
            truth={"y": x.sum(axis=1, dtype=np.float64)},
            naive={"y": np.cumsum(x, axis=1)[:, -1]},  # one after the other, in fp32
            reads={"x": (compulsory(x.size), once(rows, n))},
            writes={"y": (compulsory(rows), 32 * rows)},
            mistakes=lambda x=x: _partial_sums(x),
        )


def _partial_sums(x: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    thread = np.arange(x.shape[1]) % 128
    shares = {
        "only thread 0's share is stored": thread == 0,
        "only the first warp's share is stored": thread < 32,
        "only lane 0 of each warp is added: the shuffles are missing": thread % 32 == 0,
        "only the first 128 elements are added: step on by blockDim.x": np.arange(len(thread))
        < 128,
    }
    wrong = {text: {"y": (x * taken).sum(axis=1)} for text, taken in shares.items()}
    last = x[:, (len(thread) - 1) // 128 * 128 :] if x.shape[1] > 128 else x[:, -1:]
    return wrong | {"every step overwrites the sum: use +=": {"y": last.sum(axis=1)}}


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
    more = _normal(seed, name, max(0, Nk - len(fx.K)), fx.K.shape[1])
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
    q, k = _normal(seed, name + "q", 2, 2, Nq, d), _normal(seed, name + "k", 2, 1, Nk, d)
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
    ragged = {"ragged": ("the row need not be a multiple of the block", _normal(seed, "r", 6, 213))}
    yield _softmax_run(seed, 213, ragged)
    few = {"short_rows": ("rows shorter than a warp work", 3 * _normal(seed, "f", 6, 7))}
    yield _softmax_run(seed, 7, few)
    if tier is Tier.FULL:
        yield _softmax_run(seed, 1, {"one_key": ("a single key works", _normal(seed, "o", 6, 1))})
        long = {"long": ("equals softmax for long rows", 2 * _normal(seed, "l", 8, 3001))}
        yield _softmax_run(seed, 3001, long)


def _row_kinds(seed: int, Nk: int) -> dict[str, tuple[str, np.ndarray]]:
    z = _normal(seed, "rows", 4, 4, Nk)
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
    normal = _softmax(2 * _normal(seed, "weights", 64, 64))["p"]
    order = _rng(seed, "order").permutation(64)
    V = _normal(seed, "values", 2, 64, 64)
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
    p = _softmax(_normal(seed, name + "p", 4 * Nq, Nk))["p"].reshape(2, 2, Nq, Nk)
    return _weighted_sum_launch((Slot(name, invariant),), p, _normal(seed, name, 2, 1, Nk, d))


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


EXERCISES = [
    cuda_exercise(
        id="cuda_add",
        lesson=6,
        title="z = x + y, one element a thread",
        kernel="vector_add",
        parameters="x y z n",
        runs=add_runs,
        answer="autograder.exercises.cuda_answers:cuda_add",
        hints=(
            "blockIdx.x blocks of blockDim.x threads come before this block.",
            "So thread threadIdx.x of it has element i = blockIdx.x * blockDim.x + threadIdx.x.",
            "cdiv(n, 256) blocks are more than n threads: those with i ≥ n have nothing to do.",
        ),
    ),
    cuda_exercise(
        id="cuda_transpose",
        lesson=6,
        title="Y = Xᵀ through shared memory",
        kernel="transpose",
        parameters="x y rows columns",
        runs=transpose_runs,
        answer="autograder.exercises.cuda_answers:cuda_transpose",
        hints=(
            "threadIdx.x has to run along a row twice: of X when loading, of Y when storing.",
            "Load tile[r][threadIdx.x], store tile[threadIdx.x][r]: the turn is on the chip.",
            "Between the two every thread waits for all others: __syncthreads().",
            "A column of tile[32][32] is one bank. In tile[32][33] it is 32 banks.",
        ),
    ),
    cuda_exercise(
        id="cuda_row_sum",
        lesson=6,
        title="The sum of each row, by shuffles and shared memory",
        kernel="row_sum",
        parameters="x y n",
        runs=row_sum_runs,
        answer="autograder.exercises.cuda_answers:cuda_row_sum",
        hints=(
            "A thread's share: elements threadIdx.x, threadIdx.x + blockDim.x, and so on.",
            "__shfl_xor_sync(ALL_LANES, sum, apart) is the value of `sum` in the lane that is "
            "`apart` away. Add it, for apart = 16, 8, 4, 2, 1.",
            "Every lane of a warp has its sum now. Lane 0 puts it into per_warp[warp]; thread 0 "
            "may read it after a __syncthreads().",
        ),
    ),
    cuda_exercise(
        id="cuda_scores",
        lesson=6,
        title="Naive attention 1 of 3: S = scale · Q Kᵀ",
        kernel="naive_scores",
        parameters="q k s heads kv_heads Nq Nk d scale causal",
        runs=scores_runs,
        answer="autograder.exercises.cuda_answers:cuda_scores",
        hints=(
            "x runs along the keys: j = blockIdx.x * blockDim.x + threadIdx.x. In y it is i.",
            "Element c of a query is q[query_row * d + c], of a key k[key_row * d + c].",
            "A key is visible when j <= i + Nk - Nq. A hidden score is −INFINITY, and stored too.",
        ),
    ),
    cuda_exercise(
        id="cuda_softmax",
        lesson=6,
        title="Naive attention 2 of 3: P = softmax(S), and the LSE",
        kernel="naive_softmax",
        parameters="s p lse Nk",
        runs=softmax_runs,
        answer="autograder.exercises.cuda_answers:cuda_softmax",
        hints=(
            "Three loops of the same form as in row_sum: for its maximum, for its sum, to store.",
            "expf(s[j] - shift) in the second and in the third loop.",
            "lse[row] = m + logf(l), by one thread.",
        ),
    ),
    cuda_exercise(
        id="cuda_weighted_sum",
        lesson=6,
        title="Naive attention 3 of 3: O = P V",
        kernel="naive_weighted_sum",
        parameters="p v o heads kv_heads Nq Nk d",
        runs=weighted_sum_runs,
        answer="autograder.exercises.cuda_answers:cuda_weighted_sum",
        hints=(
            "x runs along the columns of O this time, y along the queries.",
            "O[i, c] is the sum over j of P[i, j] · V[j, c].",
            "p[query_row * Nk + j] and v[(first_key_row + j) * d + c].",
        ),
    ),
]
