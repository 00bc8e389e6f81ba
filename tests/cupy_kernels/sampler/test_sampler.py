"""Every case of the sampler on the simulator, against its truth in NumPy."""

import pytest

from . import SAMPLER
from .attention import ATTENTION
from .case import KERNELS
from .simulate import simulate


@pytest.mark.parametrize("name", SAMPLER | ATTENTION)
def test_equals_the_truth(name):
    case = (SAMPLER | ATTENTION)[name]
    arguments, expected = case.arguments()
    counts = simulate(case, arguments)
    assert case.differences(arguments, expected) == []
    assert counts.warnings == []
    assert {key: getattr(counts.totals, key) for key in case.counts} == case.counts
    if case.printed is not None:
        assert counts.printed == case.printed


@pytest.mark.parametrize("name", SAMPLER)
def test_the_truth_can_fail(name):
    """Outputs as they are before the launch never pass for the truth."""
    arguments, expected = SAMPLER[name].arguments()
    assert SAMPLER[name].differences(arguments, expected)


def test_every_kernel_file_has_a_case():
    assert {path.stem for path in KERNELS.glob("*.cu")} == set(SAMPLER)


def test_kernels_are_small():
    assert all(len(path.read_text().splitlines()) <= 40 for path in KERNELS.glob("*.cu"))
