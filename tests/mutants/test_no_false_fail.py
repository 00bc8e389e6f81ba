"""A right answer never fails: many seeds, and answers whose rounding differs."""

import pytest

from autograder.exercise import Tier, all_exercises, get_exercise
from autograder.grading import grade_function
from autograder.result import Outcome
from tests.mutants.mutant import rewritten

LOG2E = "np.float32(1.4426950408889634)"
# name → (exercise, changes): right answers that round differently from the shipped one.
VARIANTS = {
    "flash2, sums backwards": (
        "flash2_forward",
        {
            "q @ K[cols].T": "q[:, ::-1] @ K[cols][:, ::-1].T",
            "p @ V[cols]": "p[:, ::-1] @ V[cols][::-1]",
            "p.sum(axis=1)": "p[:, ::-1].sum(axis=1)",
        },
    ),
    "flash2, sums term by term": (
        "flash2_forward",
        {"p.sum(axis=1)": "np.cumsum(p, axis=1)[:, -1]"},
    ),
    "flash2, scale goes first": (
        "flash2_forward",
        {"scale * (q @ K[cols].T)": "(np.float32(scale) * q) @ K[cols].T"},
    ),
    "flash2, exp2": (
        "flash2_forward",
        {
            "shifted_exp(s, m_new[:, None])": f"np.where(s == -np.inf, np.float32(0), np.exp2({LOG2E} * s - {LOG2E} * m_new[:, None]))",
        },
    ),
    "flash2, float64 on chip": (
        "flash2_forward",
        {"np.zeros(q.shape, np.float32)": "np.zeros(q.shape, np.float64)"},
    ),
    "flash1, sums backwards": (
        "flash1_forward",
        {"q @ k.T": "q[:, ::-1] @ k[:, ::-1].T", "p @ v": "p[:, ::-1] @ v[::-1]"},
    ),
    "flash1, scale goes first": (
        "flash1_forward",
        {"scale * (q @ k.T)": "(np.float32(scale) * q) @ k.T"},
    ),
    "backward, sums backwards": (
        "flash_backward",
        {
            "scale * (q @ k.T)": "scale * (q[:, ::-1] @ k[:, ::-1].T)",
            "do @ v.T": "do[:, ::-1] @ v[:, ::-1].T",
            "p.T @ do": "p[::-1].T @ do[::-1]",
        },
    ),
    "backward, exp2": (
        "flash_backward",
        {
            "shifted_exp(s, LSE[rows][:, None])": f"np.where(s == -np.inf, np.float32(0), np.exp2({LOG2E} * s - {LOG2E} * (lse := LSE[rows])[:, None]))",
        },
    ),
    "three kernels, sums backwards": (
        "three_kernels",
        {"q @ K[cols].T": "q[:, ::-1] @ K[cols][:, ::-1].T"},
    ),
    "online softmax, term by term": (
        "online_softmax",
        {"p.sum(axis=-1)": "np.cumsum(p, axis=-1)[..., -1]"},
    ),
    "scores, sums backwards": (
        "cuda_scores",
        {"for (int c = 0; c < d; ++c)": "for (int c = d - 1; c >= 0; --c)"},
    ),
    "scores, scale goes first": (
        "cuda_scores",
        {"? scale * score": "? score", "q_c = q[": "q_c = scale * q["},
    ),
    "scores, two roundings": (
        "cuda_scores",
        {"score += q_c * k_c;": "score = __fadd_rn(score, __fmul_rn(q_c, k_c));"},
    ),
    "softmax, exp2": (
        "cuda_softmax",
        {
            "l += expf(s[j] - shift)": "l += exp2f(1.44269504f * (s[j] - shift))",
            "p[j] = expf(s[j] - shift)": "p[j] = exp2f(1.44269504f * (s[j] - shift))",
        },
    ),
    "softmax, divides": ("cuda_softmax", {"* inverse;": "/ (l > 0.0f ? l : 1.0f);"}),
    "row sum, warps backwards": (
        "cuda_row_sum",
        {"for (int w = 0; w < warps; ++w)": "for (int w = warps - 1; w >= 0; --w)"},
    ),
    "row sum, one warp": (
        "cuda_row_sum",
        {"= blockDim.x / WARP_SIZE;": "= 1; if (warp) return;"} | {"j += blockDim.x": "j += 32"},
    ),
    "weighted sum, backwards": (
        "cuda_weighted_sum",
        {"for (int j = 0; j < Nk; ++j)": "for (int j = Nk - 1; j >= 0; --j)"},
    ),
}


CANDIDATES = [
    pytest.param(exercise.id, {}, id=exercise.id) for exercise in all_exercises().values()
] + [
    pytest.param(exercise_id, changes, id=name) for name, (exercise_id, changes) in VARIANTS.items()
]


def _never_fails(exercise_id, changes, seeds, tier):
    function = rewritten(exercise_id, changes)
    for seed in seeds:
        result = grade_function(function, exercise_id, tier=tier, seed=seed)
        wrong = [finding for finding in result.findings if not finding.passed]
        assert result.outcome is Outcome.PASS, f"seed {seed}: {wrong[:2]} {result.message}"


@pytest.mark.parametrize(("exercise_id", "changes"), CANDIDATES)
def test_four_seeds(exercise_id, changes):
    _never_fails(exercise_id, changes, range(4), Tier.QUICK)


@pytest.mark.slow
@pytest.mark.parametrize(("exercise_id", "changes"), CANDIDATES)
def test_many_seeds(exercise_id, changes):
    # A kernel in the simulator takes as long as thirty functions on the model machine.
    seeds = range(6) if get_exercise(exercise_id).kernel else range(200)
    _never_fails(exercise_id, changes, seeds, Tier.FULL)
