"""Is the answer exact? The error a kernel may make is measured, not chosen.

error(candidate) ≤ c · error(naive kernel of the same dtypes) + floor, each error being the
largest absolute difference from float64 over the tensor. c = 2 for the forward pass and 3 for
gradients. NaN and +∞ fail, and so does −∞ except where the truth is −∞.
"""

from dataclasses import dataclass

import numpy as np

FORWARD_FACTOR, GRADIENT_FACTOR = 2, 3
FORWARD_FLOOR = 1e-6


@dataclass(frozen=True)
class Budget:
    """The truth for one tensor and the largest error allowed against it."""

    truth: np.ndarray
    allowed: float

    @classmethod
    def of(cls, truth, naive, *, factor: float, floor: float) -> "Budget":
        """The budget that a naive kernel's own error sets. Raises ValueError if it is unlimited."""
        allowed = factor * max_error(naive, truth) + floor
        if not np.isfinite(allowed):
            raise ValueError("the naive kernel fails on this fixture: it allows any error")
        return cls(truth, allowed)

    def accepts(self, got: np.ndarray) -> bool:
        """Whether `got` has the right shape and no error above the budget."""
        return got.shape == self.truth.shape and max_error(got, self.truth) <= self.allowed


def errors(got: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """|got − truth| in float64; ∞ where got is not finite and the truth is not that same −∞."""
    got = np.asarray(got).astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.abs(got - truth)
    difference[np.isneginf(truth) & np.isneginf(got)] = 0
    return np.where(np.isnan(difference), np.inf, difference)


def max_error(got: np.ndarray, truth: np.ndarray) -> float:
    """The largest of `errors`, 0 for an empty tensor."""
    return float(np.max(errors(got, truth), initial=0.0))
