"""Random programs leave the same memory behind in the simulator and in a scalar interpreter."""

import pytest

from . import generator
from .compare import differences, interpreted, simulated


@pytest.mark.parametrize("seed", range(60))
def test_same_memory(seed):
    assert differences(simulated(seed), interpreted(seed)) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_same_memory_on_many_more(first):
    wrong = {
        seed: lines
        for seed in range(first, first + 50)
        if (lines := differences(simulated(seed), interpreted(seed)))
    }
    assert wrong == {}


def test_programs_cover_what_they_claim():
    """Branches, loops, guards, barriers and reductions all occur in the programs that are run."""
    text = "\n".join(generator.program(seed) for seed in range(60))
    wanted = ["bra L", "@!%p", "bar.sync", "red.shared", "red.global", "ld.local", "st.local"]
    wanted += [
        "mad.wide",
        "prmt",
        "lop3",
        "shf.l",
        "bfe.s64",
        "fma.r",
        "cvt.sat",
        ".ftz",
        "setp.nan",
    ]
    assert [word for word in wanted if word not in text] == []
