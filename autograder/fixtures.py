"""The inputs that tell a right kernel from a wrong one.

Normal data forgives most mistakes: its scores are small, its lengths even, its maximum soon
found. Each builder here takes one excuse away. All are fp32 with one head; every fixture has at
least three tiles of keys unless it is about a single row or key.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reference_numpy.io_complexity import Problem


@dataclass(frozen=True)
class Fixture:
    """One attention problem.

    Attributes:
        name, invariant: what it is called, and what a kernel that passes it can claim.
        Q, K, V: (Nq, d), (Nk, d), (Nk, d), float32.
        dO: (Nq, d), float32, the gradient that reaches O.
        causal, scale: as the kernel is called.
        Br, Bc: tile sizes handed to the kernel.
    """

    name: str
    invariant: str
    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    dO: np.ndarray
    causal: bool
    scale: float
    Br: int
    Bc: int

    @property
    def problem(self) -> Problem:
        """The sizes, for the closed forms."""
        (Nq, d), Nk = self.Q.shape, len(self.K)
        return Problem(Nq, Nk, d, self.Br, self.Bc, self.causal)

    @property
    def sram_bytes(self) -> int:
        """An SRAM that holds four tiles of queries and three of keys, and the row statistics."""
        d = self.Q.shape[1]
        return 4 * (d * (4 * self.Br + 3 * self.Bc) + 8 * self.Br)


Rng = np.random.Generator


def _normal(rng: Rng, Nq: int, Nk: int, d: int) -> dict[str, np.ndarray]:
    shapes = {"Q": (Nq, d), "K": (Nk, d), "V": (Nk, d), "dO": (Nq, d)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _sloped(rng: Rng, scores: np.ndarray, Nq: int) -> dict[str, np.ndarray]:
    """Scores s[i, j] ≈ scores[j], with a little noise (d = 64).

    The slope is steep in Q and gentle in K: dQ, a sum of keys, would otherwise drown in the
    rounding of one huge column.
    """
    d, Nk = 64, len(scores)
    data = _normal(rng, Nq, Nk, d)
    data["K"] = 0.1 * data["K"]
    data["K"][:, 0] = scores / 100
    data["Q"] = 0.05 * data["Q"]
    data["Q"][:, 0] += 800.0  # times scale 1/8
    return data


def _rising(rng: Rng) -> dict[str, np.ndarray]:
    # About 61 from tile to tile and 300 in all: exp of an unshifted score overflows, and so does
    # one shifted by the first tile's maximum.
    return _sloped(rng, 1.9 * np.arange(160, dtype=np.float32), 64)


def _deep_negative(rng: Rng) -> dict[str, np.ndarray]:
    # With m = 0 every e^−300 underflows and the row is 0/0.
    return _sloped(rng, np.full(160, -300, np.float32), 64)


def _row_spread(rng: Rng) -> dict[str, np.ndarray]:
    # Rows from −200 to 200 in every tile: shifted by the maximum of a whole tile, the low rows
    # underflow to 0/0.
    data = _normal(rng, 64, 96, 64)
    data["Q"] = 0.1 * data["Q"]
    data["Q"][:, 0] = 8 * rng.permutation(np.linspace(-200, 200, 64)).astype(np.float32)
    data["K"][:, 0] = 1
    return data


def _one_hot_values(rng: Rng) -> dict[str, np.ndarray]:
    data = _normal(rng, 80, 64, 64)
    return data | {"V": np.eye(64, dtype=np.float32)}  # O is P: a wrong column names its key


@dataclass(frozen=True)
class _Recipe:
    invariant: str
    build: Callable[[Rng], dict[str, np.ndarray]]
    causal: bool = False
    Br: int = 32
    Bc: int = 32
    scale: float | None = None  # None: 1/√d


QUICK = {
    "normal": _Recipe(
        "equals attention in float64",
        lambda rng: _normal(rng, 128, 128, 64),
    ),
    "rising": _Recipe("stable when the maximum keeps rising", _rising),
    "deep_negative": _Recipe("stable when all scores are very negative", _deep_negative),
    "row_spread": _Recipe("every row has a maximum of its own", _row_spread),
    "other_scale": _Recipe(
        "scale is what the caller says, not always 1/√d",
        lambda rng: _normal(rng, 48, 80, 64),
        Bc=16,
        scale=-0.3,
    ),
    "ragged": _Recipe(
        "lengths need not be multiples of the tile",
        lambda rng: _normal(rng, 97, 113, 64),
    ),
    "uneven_tiles": _Recipe(
        "the tile sizes do not change the answer",
        lambda rng: _normal(rng, 100, 100, 64),
        Br=48,
        Bc=16,
    ),
    "one_hot_values": _Recipe("every weight lands on its own key", _one_hot_values, Bc=16),
    "more_keys": _Recipe("Nq and Nk may differ", lambda rng: _normal(rng, 33, 129, 64)),
    "causal": _Recipe(
        "causal: no query sees a later key",
        lambda rng: _normal(rng, 128, 128, 64),
        causal=True,
    ),
    "causal_more_keys": _Recipe(
        "causal: the mask is aligned bottom-right",
        lambda rng: _normal(rng, 37, 90, 64),
        causal=True,
        Bc=16,
    ),
    "masked_rows": _Recipe(
        "a query that sees no key gives O = 0 and LSE = −∞",
        lambda rng: _normal(rng, 113, 73, 64),
        causal=True,
        Bc=24,
    ),
    "one_row": _Recipe("a single query works", lambda rng: _normal(rng, 1, 100, 64)),
    "one_key": _Recipe("a single key works", lambda rng: _normal(rng, 37, 1, 64)),
}

FULL_ONLY = {
    "wide_head": _Recipe(
        "any head dimension works (d = 128)", lambda rng: _normal(rng, 150, 190, 128)
    ),
    "narrow_head": _Recipe(
        "any head dimension works (d = 40)", lambda rng: _normal(rng, 77, 141, 40), Bc=48
    ),
    "long": _Recipe(
        "equals attention in float64 at N = 512",
        lambda rng: _normal(rng, 512, 512, 64),
        Br=64,
        Bc=64,
    ),
    "tiny_tiles": _Recipe(
        "any head dimension and any tile work (d = 20)",
        lambda rng: _normal(rng, 37, 61, 20),
        Br=8,
        Bc=8,
    ),
    "causal_deep_negative": _Recipe(
        "causal: a hidden key counts for nothing, however low the scores",
        _deep_negative,
        causal=True,
    ),
    "causal_one_row": _Recipe(
        "causal: a single query works", lambda rng: _normal(rng, 1, 100, 64), causal=True
    ),
    "causal_one_key": _Recipe(
        "causal: a single key works", lambda rng: _normal(rng, 37, 1, 64), causal=True
    ),
    "causal_rising": _Recipe(
        "causal: stable when the maximum keeps rising", _rising, causal=True, Br=16, Bc=32
    ),
    "causal_ragged": _Recipe(
        "causal: lengths need not be multiples of the tile",
        lambda rng: _normal(rng, 131, 131, 64),
        causal=True,
        Br=48,
    ),
}


def generator(seed: int, name: str) -> Rng:
    """Random numbers of their own for each name, whatever else is drawn from `seed`."""
    return np.random.default_rng([seed, *name.encode()])


def standard_normal(seed: int, name: str, *shape: int) -> np.ndarray:
    """Standard normal numbers, float32, from the generator of `name`."""
    return generator(seed, name).standard_normal(shape).astype(np.float32)


def fixture(name: str, seed: int) -> Fixture:
    """The fixture called `name`, drawn from `seed`. Raises KeyError for an unknown name."""
    recipe = (QUICK | FULL_ONLY)[name]
    data = recipe.build(generator(seed, name))
    return Fixture(
        name=name,
        invariant=recipe.invariant,
        causal=recipe.causal,
        scale=recipe.scale or data["Q"].shape[1] ** -0.5,
        Br=recipe.Br,
        Bc=recipe.Bc,
        **data,
    )
