"""FLOPs: what the references really compute, element by element, is what the closed forms say."""

import numpy as np
import pytest

from reference_numpy import flops, io_complexity
from reference_numpy.flash1_forward import flash1_forward
from reference_numpy.flash2_forward import flash2_forward
from reference_numpy.flash_backward import flash_backward
from reference_numpy.flop_counter import CountingMachine
from reference_numpy.io_complexity import Problem
from reference_numpy.oracle import attention

PROBLEMS = [
    Problem(64, 64, 16, 16, 16),
    Problem(97, 113, 40, 32, 32),
    Problem(100, 60, 8, 48, 16),
    Problem(1, 37, 24, 8, 8),
    Problem(37, 1, 24, 8, 8),
    Problem(64, 64, 16, 16, 16, causal=True),
    Problem(40, 104, 16, 16, 32, causal=True),
    Problem(113, 73, 16, 32, 24, causal=True),
]


class Run:
    """A counting machine with random Q, K, V and dO, and everything else in HBM by name."""

    def __init__(self, p: Problem):
        self.p, self.machine = p, CountingMachine()
        rng = np.random.default_rng(p.Nq + p.Nk)
        self.hbm = {
            name: self.machine.hbm(name, rng.standard_normal((N, p.d)).astype(np.float32))
            for name, N in (("Q", p.Nq), ("K", p.Nk), ("V", p.Nk), ("dO", p.Nq))
        }
        shapes = {"O": (p.Nq, p.d), "dQ": (p.Nq, p.d), "dK": (p.Nk, p.d), "dV": (p.Nk, p.d)}
        shapes |= dict.fromkeys(("l", "m", "LSE", "D"), (p.Nq,))
        self.hbm |= {name: self.machine.empty(name, shape) for name, shape in shapes.items()}

    def of(self, kernel, names: str) -> "Run":
        p, tensors = self.p, [self.hbm[name] for name in names.split()]
        kernel(self.machine, *tensors, Br=p.Br, Bc=p.Bc, scale=p.d**-0.5, causal=p.causal)
        return self


FLASH1 = (flash1_forward, "Q K V O l m LSE")
FLASH2 = (flash2_forward, "Q K V O LSE")
BACKWARD = (flash_backward, "Q K V O dO LSE D dQ dK dV")


@pytest.mark.parametrize("p", PROBLEMS, ids=str)
@pytest.mark.parametrize(
    ("kernel", "closed_form"),
    [(FLASH1, flops.flash1_elementwise), (FLASH2, flops.flash2_elementwise)],
    ids=["flash1", "flash2"],
)
def test_non_matmul_flops_are_the_closed_form(kernel, closed_form, p):
    assert Run(p).of(*kernel).machine.flops.non_matmul == closed_form(p)


@pytest.mark.parametrize("kernel", [FLASH1, FLASH2], ids=["flash1", "flash2"])
def test_counting_changes_neither_the_result_nor_the_traffic(kernel):
    p = PROBLEMS[1]
    machine = Run(p).of(*kernel).machine
    truth, _ = attention(*(machine.to_host(name) for name in "QKV"))
    form = io_complexity.flash1_forward if kernel is FLASH1 else io_complexity.flash2_forward
    assert np.abs(machine.to_host("O") - truth).max() < 1e-6
    assert machine.traffic.total == 4 * io_complexity.total(form(p))
    assert machine.sram.used == 0


@pytest.mark.parametrize("p", PROBLEMS[:5], ids=str)
@pytest.mark.parametrize("kernel", [FLASH1, FLASH2], ids=["flash1", "flash2"])
def test_matmul_flops_of_the_forward_are_two_products(kernel, p):
    product = 2 * p.Nq * p.Nk * p.d
    assert Run(p).of(*kernel).machine.flops.matmul == flops.FORWARD_MATMULS * product


def test_matmul_flops_of_the_backward_are_five_products():
    p = PROBLEMS[0]
    run = Run(p).of(*FLASH2)
    forward = run.machine.flops.matmul
    run.of(*BACKWARD)
    expected = flops.matmul_flops(p.Nq, p.d, flops.FLASH_BACKWARD_MATMULS)
    assert run.machine.flops.matmul - forward == expected


def test_one_operation_of_each_kind():
    machine = CountingMachine()
    x = machine.hbm("X", np.full((3, 5), 2.0, np.float32))[:]
    y = np.exp(x - x.max(axis=1)[:, None])  # exp 15, subtract 15, maximum 3·4
    np.where(x == 2, y, 0).sum()  # the comparison and the selection are free, the sum is 14 adds
    x @ x.T  # 2·3·3·5
    x += 1  # in place counts as well: 15 adds
    assert machine.flops.elementwise == {"exp": 15, "subtract": 15, "maximum": 12, "add": 29}
    assert machine.flops.matmul == 90
