"""Metered bytes equal the closed forms, to the byte, ragged tiles included."""

import pytest

from reference_numpy import io_complexity
from reference_numpy.io_complexity import Problem, total
from tests.reference_numpy.running import (
    data_for,
    metered,
    predicted,
    run_backward,
    run_flash1,
    run_flash2,
    run_standard_backward,
    run_three_kernels,
)

LENGTHS = (1, 5, 97, 256, 1000)
HEAD_DIMS = (16, 40, 64, 128)
SIZES = [(N, N, d) for N in LENGTHS for d in HEAD_DIMS]
SIZES += [(97, 256, 64), (256, 97, 40), (1, 1000, 128), (1000, 5, 16)]
RUNS = {
    "flash1_forward": run_flash1,
    "flash2_forward": run_flash2,
    "flash_backward": run_backward,
}


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(("Nq", "Nk", "d"), SIZES)
@pytest.mark.parametrize("algorithm", RUNS)
def test_flash_kernels_move_what_the_closed_form_says(algorithm, Nq, Nk, d, causal):
    p = Problem(Nq, Nk, d, Br=48, Bc=64, causal=causal)
    machine = RUNS[algorithm](p, data_for(p))
    assert metered(machine) == predicted(getattr(io_complexity, algorithm)(p))


@pytest.mark.parametrize(("Nq", "Nk", "d"), SIZES)
def test_the_standard_kernels_move_what_the_closed_form_says(Nq, Nk, d):
    p = Problem(Nq, Nk, d, Br=16, Bc=32)
    machine = run_three_kernels(p, data_for(p))
    assert metered(machine) == predicted(io_complexity.three_kernels(p))


# A chip that cannot keep K must still hold Br rows of S: with few keys there is no such chip.
REREAD = [(Nq, Nk, d) for Nq, Nk, d in SIZES if 2 * Nk * d > 16 * max(Nk, d) + 3 * 32 * d]


@pytest.mark.parametrize(("Nq", "Nk", "d"), REREAD)
def test_the_standard_kernels_read_k_and_v_again_where_they_do_not_fit(Nq, Nk, d):
    p = Problem(Nq, Nk, d, Br=16, Bc=32)
    data = data_for(p)
    machine = run_three_kernels(p, data, sram=2 * data["K"].nbytes - 1)
    assert metered(machine) == predicted(io_complexity.three_kernels(p, resident=False))


@pytest.mark.parametrize(("Nq", "Nk", "d"), SIZES)
def test_the_standard_backward_moves_what_the_closed_form_says(Nq, Nk, d):
    p = Problem(Nq, Nk, d, Br=16, Bc=32)
    machine = run_standard_backward(p, data_for(p))
    assert metered(machine) == predicted(io_complexity.standard_backward(p))


@pytest.mark.parametrize("N", LENGTHS)
@pytest.mark.parametrize("d", HEAD_DIMS)
def test_the_papers_sums(N, d):
    p = Problem(N, N, d, Br=48, Bc=64)
    forward, backward = io_complexity.three_kernels(p), io_complexity.standard_backward(p)
    assert total(forward) == 4 * N * d + 4 * N**2
    assert total(backward) == 7 * N**2 + 8 * N * d
    assert total(forward) + total(backward) == 11 * N**2 + 12 * N * d
    Tr = -(-N // p.Br)
    assert total(io_complexity.flash2_forward(p)) == 2 * N * d + N + Tr * 2 * N * d
