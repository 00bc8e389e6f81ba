"""Running the reference algorithms on random problems, for the tests of this folder."""

from collections.abc import Callable

import numpy as np

from reference_numpy import flash1_forward as flash1
from reference_numpy import flash2_forward as flash2
from reference_numpy import flash_backward as backward
from reference_numpy import three_kernels
from reference_numpy.io_complexity import IO, Problem
from reference_numpy.machine import Machine
from reference_numpy.oracle import attention
from reference_numpy.standard_backward import standard_backward

ROOMY = 64 * 2**20  # an SRAM that never stands in the way


def data_for(p: Problem, seed: int = 0) -> dict[str, np.ndarray]:
    """Normal Q, K, V, dO for the problem, float32."""
    rng = np.random.default_rng(seed)
    shapes = {"Q": (p.Nq, p.d), "K": (p.Nk, p.d), "V": (p.Nk, p.d), "dO": (p.Nq, p.d)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _run(kernel: Callable, p: Problem, arrays: dict, empty: dict, sram: int, **keywords) -> Machine:
    machine = Machine(sram)
    hbm = [machine.hbm(name, array) for name, array in arrays.items()]
    hbm += [machine.empty(name, shape) for name, shape in empty.items()]
    kernel(machine, *hbm, Br=p.Br, Bc=p.Bc, scale=p.d**-0.5, **keywords)
    machine.sram.settle()
    return machine


def _qkv(data: dict) -> dict:
    return {name: data[name] for name in "QKV"}


def run_three_kernels(p: Problem, data: dict, sram: int = ROOMY) -> Machine:
    """Standard attention."""
    empty = {"S": (p.Nq, p.Nk), "P": (p.Nq, p.Nk), "O": (p.Nq, p.d)}
    return _run(three_kernels.three_kernels, p, _qkv(data), empty, sram)


def run_flash1(p: Problem, data: dict, sram: int = ROOMY) -> Machine:
    """FlashAttention-1."""
    empty = {"O": (p.Nq, p.d), "l": (p.Nq,), "m": (p.Nq,), "LSE": (p.Nq,)}
    return _run(flash1.flash1_forward, p, _qkv(data), empty, sram, causal=p.causal)


def run_flash2(p: Problem, data: dict, sram: int = ROOMY) -> Machine:
    """FlashAttention-2."""
    empty = {"O": (p.Nq, p.d), "LSE": (p.Nq,)}
    return _run(flash2.flash2_forward, p, _qkv(data), empty, sram, causal=p.causal)


def run_backward(p: Problem, data: dict, sram: int = ROOMY) -> Machine:
    """The recomputing backward pass, given the true O and LSE."""
    O, LSE = attention(data["Q"], data["K"], data["V"], causal=p.causal)
    arrays = _qkv(data) | {"O": O, "dO": data["dO"], "LSE": LSE}
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    empty = {"D": (p.Nq,), "dQ": (p.Nq, p.d), "dK": (p.Nk, p.d), "dV": (p.Nk, p.d)}
    return _run(backward.flash_backward, p, arrays, empty, sram, causal=p.causal)


def run_standard_backward(p: Problem, data: dict, sram: int = ROOMY) -> Machine:
    """The standard backward pass, given the P that the forward pass left."""
    forward = run_three_kernels(p, data)
    arrays = _qkv(data) | {"P": forward.to_host("P"), "dO": data["dO"]}
    empty = dict.fromkeys(("dP", "dS"), (p.Nq, p.Nk))
    empty |= {"dQ": (p.Nq, p.d), "dK": (p.Nk, p.d), "dV": (p.Nk, p.d)}
    return _run(standard_backward, p, arrays, empty, sram)


def metered(machine: Machine) -> dict[str, tuple[int, int]]:
    """Bytes (read, written) of the arrays that moved."""
    return {k: (b.read, b.written) for k, b in machine.traffic.arrays.items() if b.total}


def predicted(io: IO, width: int = 4) -> dict[str, tuple[int, int]]:
    """The closed form in bytes, arrays that do not move left out."""
    moved = {name: (width * m.read, width * m.written) for name, m in io.items()}
    return {name: both for name, both in moved.items() if any(both)}
