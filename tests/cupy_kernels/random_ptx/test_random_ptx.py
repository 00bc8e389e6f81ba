"""Random small programs leave the same memory behind in the simulator and in a scalar interpreter."""

import numpy as np
import pytest

from cupy_kernels.simulator import launch, load

from . import generator, scalar

THREADS = generator.GRID * generator.BLOCK


def _buffers(seed):
    cells = np.random.default_rng(seed).integers(0, 2**32, 8, dtype=np.uint32)
    return generator.inputs(seed), np.zeros(THREADS, generator.RESULT), cells


def _simulated(seed):
    words, results, cells = _buffers(seed)
    program = load(generator.program(seed), "", "random_program.ptx")
    arguments = (words, results.view(np.uint8), cells)
    launch(program.kernels["random_program"], generator.GRID, generator.BLOCK, arguments)
    return results, cells


def _interpreted(seed):
    buffers = [bytearray(array.tobytes()) for array in _buffers(seed)]
    scalar.run(generator.program(seed), generator.GRID, generator.BLOCK, buffers)
    return np.frombuffer(buffers[1], generator.RESULT), np.frombuffer(buffers[2], np.uint32)


def _assert_agree(seed):
    (results, cells), (wanted, wanted_cells) = _simulated(seed), _interpreted(seed)
    for name in "rd":
        np.testing.assert_array_equal(results[name], wanted[name], f"%{name} of seed {seed}")
    same_bits = results["f"].view(np.uint32) == wanted["f"].view(np.uint32)
    both_nan = np.isnan(results["f"]) & np.isnan(wanted["f"])
    wrong = np.argwhere(~(same_bits | both_nan))
    assert not len(wrong), (
        f"seed {seed}: %f{wrong[0][1]} of thread {wrong[0][0]}, {len(wrong)} in all"
    )
    np.testing.assert_array_equal(cells, wanted_cells, f"global cells of seed {seed}")


@pytest.mark.parametrize("seed", range(60))
def test_same_memory(seed):
    _assert_agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_same_memory_on_many_more(first):
    for seed in range(first, first + 50):
        _assert_agree(seed)


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
