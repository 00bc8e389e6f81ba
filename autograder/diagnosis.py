"""What usually makes a result wrong in just this way.

For each common mistake the wrong result it leads to is computed, and compared with what the
student's function returned. A match names the mistake; no match says nothing.
"""

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np

from autograder.exactness import errors
from autograder.fixtures import Fixture
from reference_numpy.tiling import tiles

FORWARD_MISTAKES = {
    "no_max": "the maximum is not subtracted before exp, so exp overflows or underflows",
    "max_starts_at_0": "m starts at 0 instead of −∞, so very negative scores all underflow",
    "frozen_max": "m keeps the maximum of the first tile: it has to follow the new maximum",
    "no_rescale": "neither l nor O is multiplied by e^(m_old − m_new) when the maximum grows",
    "no_O_rescale": "O is not multiplied by e^(m_old − m_new) when the maximum grows",
    "no_l_rescale": "l is not multiplied by e^(m_old − m_new) when the maximum grows",
    "inverse_rescale": "the rescaling factor is upside down: it is e^(m_old − m_new), at most 1",
    "drop_first_tile": "the first tile of keys is skipped",
    "drop_middle_tile": "a tile of keys in the middle is skipped",
    "drop_last_tile": "the last tile of keys is skipped",
    "drop_ragged_tile": "the last, shorter tile of keys is skipped: use cdiv, not //",
    "pad_score_0": "padded keys keep score 0: they enter the maximum and the sum",
    "no_scale": "the scores are not multiplied by scale",
    "scale_twice": "the scores are multiplied by scale twice",
    "no_division": "O is not divided by l at the end",
    "divided_every_tile": "O is divided by l after every tile but not multiplied back",
    "no_mask": "the causal mask is not applied",
    "no_mask_in_tiles": "the causal mask is not applied",
    "mask_off_by_one": "the causal mask hides the diagonal: keys j ≤ i + Nk − Nq are visible",
    "mask_top_left": "the causal mask is aligned top-left: compare j with i + (Nk − Nq)",
    "bf16_P": "P is rounded to a 16-bit type",
    "bf16_sums": "O and l are kept in a 16-bit type between tiles",
}


class ForwardCauses:
    """Names the mistake behind wrong O's, given all the outputs (fixture, O) of one function.

    Two mistakes can look the same on one fixture. The one that explains every output, right
    ones included, is believed; without such a one, each output is looked at alone.
    """

    def __init__(self, outputs: list[tuple[Fixture, np.ndarray]]):
        self.outputs = outputs

    def of(self, fx: Fixture, O: np.ndarray) -> str:
        """The mistake that turns attention on `fx` into this O (Nq, d), or ""."""
        return self._common or matching(
            O,
            wrong_forward(fx, "")[0],
            ((text, wrong_forward(fx, name)[0]) for name, text in FORWARD_MISTAKES.items()),
        )

    @cached_property
    def _common(self) -> str:
        for name, text in FORWARD_MISTAKES.items():
            if all(alike(O, wrong_forward(fx, name)[0]) for fx, O in self.outputs):
                return text
        return ""


def lse_cause(fx: Fixture, LSE: np.ndarray) -> str:
    """What was stored instead of LSE (Nq,), or ""."""
    _, (m, l) = wrong_forward(fx, "")
    with np.errstate(divide="ignore"):
        right = m + np.log(l)
        stored_instead = {
            "only m was stored: LSE = m + ln l": m,
            "only ln l was stored: LSE = m + ln l": np.log(l),
            "l was stored: LSE = m + ln l": l,
            "the logarithm is to base 2: LSE uses the natural one": m + np.log2(l),
        }
    return matching(LSE, right, stored_instead.items())


def wrong_forward(fx: Fixture, mistake: str) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Tiled attention on `fx` with one mistake ("" for none): O, and (m, l).

    In fp32, as the student's: some mistakes show only where fp32 overflows.
    """
    Nq, (Nk, d) = len(fx.Q), fx.K.shape
    o, l = np.zeros((Nq, d), np.float32), np.zeros(Nq, np.float32)
    m = np.full_like(l, 0.0 if mistake in ("no_max", "max_starts_at_0") else -np.inf)
    with np.errstate(all="ignore"):
        for cols in _visited_tiles(mistake, Nk, fx.Bc):
            s, v = _scores(fx, mistake, fx.Q, fx.K, cols), fx.V[cols]
            if mistake == "pad_score_0":
                short = fx.Bc - s.shape[1]
                s, v = np.pad(s, ((0, 0), (0, short))), np.pad(v, ((0, short), (0, 0)))
            o, m, l = _absorb(mistake, s, v, o, m, l, first=cols.start == 0)
        if mistake not in ("no_division", "divided_every_tile"):
            o = o / np.where(l == 0, 1, l)[:, None]
    return o, (m, l)


def _visited_tiles(mistake: str, Nk: int, Bc: int) -> list[slice]:
    visited = list(tiles(Nk, Bc))
    dropped = {
        "drop_first_tile": 0,
        "drop_middle_tile": len(visited) // 2,
        "drop_last_tile": len(visited) - 1,
        "drop_ragged_tile": len(visited) - 1 if Nk % Bc else None,
    }.get(mistake)
    return [cols for j, cols in enumerate(visited) if j != dropped]


def _scores(fx: Fixture, mistake: str, Q, K, cols: slice) -> np.ndarray:
    power = {"no_scale": 0, "scale_twice": 2}.get(mistake, 1)
    s = Q.dtype.type(fx.scale**power) * (Q @ K[cols].T)
    if not fx.causal or mistake == "no_mask":
        return s
    aligned = len(K) - len(Q)
    i, j = np.arange(len(Q))[:, None], np.arange(cols.start, cols.stop)[None, :]
    last_of_its_tile = np.minimum((i // fx.Br + 1) * fx.Br, len(Q)) - 1
    in_visited_tile = cols.start <= last_of_its_tile + aligned
    offset = {"mask_top_left": 0, "mask_off_by_one": aligned - 1}.get(mistake, aligned)
    seen = in_visited_tile & ((j <= i + offset) | (mistake == "no_mask_in_tiles"))
    return np.where(seen, s, -np.inf).astype(s.dtype)


def _absorb(mistake: str, s, v, o, m, l, *, first: bool):
    m_new = np.maximum(m, s.max(axis=1))
    if mistake == "no_max" or (mistake == "frozen_max" and not first):
        m_new = m
    p = np.where(s == -np.inf, 0, np.exp(s - m_new[:, None]))
    factor = np.where(m == -np.inf, np.float32(0), np.exp(m - m_new))
    if mistake == "inverse_rescale" and not first:
        factor = 1 / factor
    if mistake == "bf16_P":
        p = _bf16(p)
    l = p.sum(axis=1) + l * (1 if mistake in ("no_rescale", "no_l_rescale") else factor)
    rescale_o = 1 if mistake in ("no_rescale", "no_O_rescale") else factor[:, None]
    o = p @ v + o * rescale_o
    if mistake == "divided_every_tile":
        o = o / np.where(l == 0, 1, l)[:, None]
    if mistake == "bf16_sums":
        o, l = _bf16(o), _bf16(l)
    return o, m_new, l


def _bf16(x: np.ndarray) -> np.ndarray:
    import ml_dtypes

    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def gradient_cause(fx: Fixture, name: str, got: np.ndarray) -> str:
    """The mistake that leads to this dQ, dK or dV (`name`) on `fx`, or ""."""
    pieces = _GradientPieces(fx)
    mistakes: dict[str, Callable[[], np.ndarray]] = {
        "dQ": pieces.wrong_dQ,
        "dK": pieces.wrong_dK,
        "dV": pieces.wrong_dV,
    }[name]()
    right = {"dQ": pieces.dQ, "dK": pieces.dK, "dV": pieces.dV}[name]
    return matching(got, right, mistakes.items())


class _GradientPieces:
    """The terms of the backward pass in float64, and the wrong ways to put them together."""

    def __init__(self, fx: Fixture):
        self.fx = fx
        self.Q, self.K, self.V, self.dO = (x.astype(np.float64) for x in (fx.Q, fx.K, fx.V, fx.dO))
        O, (m, l) = wrong_forward(fx, "")
        every_key = slice(0, len(self.K))
        s = _scores(fx, "", self.Q, self.K, every_key)
        unmasked = np.hstack(
            [
                _scores(fx, "no_mask_in_tiles", self.Q, self.K, cols)
                for cols in tiles(len(fx.K), fx.Bc)
            ]
        )
        shift, l = np.where(m == -np.inf, 0, m)[:, None], np.where(l == 0, 1, l)[:, None]
        self.P = np.where(s == -np.inf, 0, np.exp(s - shift)) / l
        with np.errstate(over="ignore"):
            self.P_unmasked = np.exp(unmasked - shift) / l
        self.P_undivided = self.P * l
        self.dP = self.dO @ self.V.T
        self.D = (self.dO * O).sum(axis=1, keepdims=True)
        self.dS = self.P * (self.dP - self.D)
        self.dQ = fx.scale * (self.dS @ self.K)
        self.dK = fx.scale * (self.dS.T @ self.Q)
        self.dV = self.P.T @ self.dO

    def _wrong_dS(self) -> dict[str, np.ndarray]:
        return {
            "D is left out: dS = P ∘ (dP − D)": self.P * self.dP,
            "D has the wrong sign: dS = P ∘ (dP − D)": self.P * (self.dP + self.D),
            "dP − D is not multiplied by P": self.dP - self.D,
            "the causal mask is not applied": self.P_unmasked * (self.dP - self.D),
            "P is e^(S − m), not e^(S − LSE)": self.P_undivided * (self.dP - self.D),
        }

    def wrong_dQ(self) -> dict[str, np.ndarray]:
        scale, (first, last) = self.fx.scale, self._outer_tiles()
        return {
            "dQ is not multiplied by scale": self.dQ / scale,
            "dQ is multiplied by scale twice": self.dQ * scale,
            "dQ is overwritten: it has to collect over the tiles of keys": scale
            * (self.dS[:, last] @ self.K[last]),
            "dQ keeps only the first tile of keys": scale * (self.dS[:, first] @ self.K[first]),
        } | {text: scale * (dS @ self.K) for text, dS in self._wrong_dS().items()}

    def wrong_dK(self) -> dict[str, np.ndarray]:
        scale = self.fx.scale
        return {
            "dK is not multiplied by scale": self.dK / scale,
            "dK is multiplied by scale twice": self.dK * scale,
        } | {text: scale * (dS.T @ self.Q) for text, dS in self._wrong_dS().items()}

    def wrong_dV(self) -> dict[str, np.ndarray]:
        return {
            "dV is multiplied by scale: only S carries it": self.dV * self.fx.scale,
            "P is e^(S − m), not e^(S − LSE)": self.P_undivided.T @ self.dO,
            "the causal mask is not applied": self.P_unmasked.T @ self.dO,
            "dV uses dS where it needs P": self.dS.T @ self.dO,
            "dV uses O where it needs dO": self.P.T @ wrong_forward(self.fx, "")[0],
        }

    def _outer_tiles(self) -> tuple[slice, slice]:
        visited = list(tiles(len(self.K), self.fx.Bc))
        return visited[0], visited[-1]


def matching(got: np.ndarray, right: np.ndarray, mistakes: Iterable[tuple[str, np.ndarray]]) -> str:
    """The first mistake (text, wrong result) that `got` looks like, or ""."""
    for text, wrong in mistakes:
        if not alike(wrong, right) and alike(got, wrong):
            return text
    return ""


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Same NaN and infinities, and elsewhere within a part in two thousand of the largest."""
    a = np.asarray(a, np.float64)
    finite = np.isfinite(b)
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), finite):
        return False
    if not finite.any():
        return True
    tolerance = 5e-4 * (np.abs(b[finite]).max() + 1e-30)
    return bool(errors(a[finite], b[finite]).max() <= tolerance)
