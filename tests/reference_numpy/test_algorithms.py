"""Every algorithm against float64, by the rule that students are graded with."""

import numpy as np
import pytest

from reference_numpy.io_complexity import Problem
from reference_numpy.oracle import (
    EPS_FP32,
    attention,
    attention_gradients,
    gradient_floors,
    naive_backward,
    naive_forward,
)
from tests.reference_numpy.running import (
    data_for,
    run_backward,
    run_flash1,
    run_flash2,
    run_standard_backward,
    run_three_kernels,
)

PROBLEMS = [
    Problem(*sizes, causal=causal)
    for sizes in [
        (128, 128, 64, 32, 32),
        (97, 113, 40, 32, 48),
        (113, 50, 16, 16, 8),
        (1, 70, 64, 8, 8),
    ]
    for causal in (False, True)
]


def max_error(got, truth):
    return np.abs(got.astype(np.float64) - truth).max()


@pytest.mark.parametrize("p", PROBLEMS, ids=str)
@pytest.mark.parametrize("run", [run_flash1, run_flash2])
def test_flash_forward(run, p):
    data = data_for(p, seed=1)
    machine, qkv = run(p, data), [data[x] for x in "QKV"]
    truth, lse = attention(*qkv, causal=p.causal)
    naive, _ = naive_forward(*qkv, causal=p.causal)
    assert max_error(machine.to_host("O"), truth) <= 2 * max_error(naive, truth) + 1e-6
    seen = lse > -np.inf
    np.testing.assert_allclose(machine.to_host("LSE")[seen], lse[seen], atol=1e-5)
    assert np.isneginf(machine.to_host("LSE")[~seen]).all()


@pytest.mark.parametrize("p", [p for p in PROBLEMS if not p.causal], ids=str)
def test_three_kernels(p):
    data = data_for(p, seed=2)
    truth, _ = attention(*(data[x] for x in "QKV"))
    naive, _ = naive_forward(*(data[x] for x in "QKV"))
    assert max_error(run_three_kernels(p, data).to_host("O"), truth) <= (
        2 * max_error(naive, truth) + 1e-6
    )


BACKWARDS = [(run_backward, p) for p in PROBLEMS] + [
    (run_standard_backward, p)
    for p in PROBLEMS
    if not p.causal  # it has no mask
]


@pytest.mark.parametrize(
    ("run", "p"), BACKWARDS, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_backward(run, p):
    data = data_for(p, seed=3)
    machine, inputs = run(p, data), [data[x] for x in ("Q", "K", "V", "dO")]
    truth = attention_gradients(*inputs, causal=p.causal)
    naive = naive_backward(*inputs, causal=p.causal)
    floors = gradient_floors(*inputs, causal=p.causal, eps=EPS_FP32)
    for name in ("dQ", "dK", "dV"):
        allowed = 3 * max_error(getattr(naive, name), getattr(truth, name)) + getattr(floors, name)
        assert max_error(machine.to_host(name), getattr(truth, name)) <= allowed


def test_tiles_do_not_change_the_answer():
    data = data_for(Problem(100, 100, 32, 1, 1), seed=4)
    outputs = [
        run_flash2(Problem(100, 100, 32, Br, Bc), data).to_host("O")
        for Br, Bc in [(1, 1), (7, 100), (100, 7), (128, 128), (64, 16)]
    ]
    for other in outputs[1:]:
        np.testing.assert_allclose(other, outputs[0], atol=2e-6)
