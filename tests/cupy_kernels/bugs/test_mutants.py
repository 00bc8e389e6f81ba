"""Take each barrier, wait and commit out of the correct kernels in turn: none may go unnoticed.

A mutant is noticed if the simulator reports it or its result is wrong. Those that are neither must
be listed as redundant, with the reason why the kernel is still correct.
"""

import re

import pytest

from cupy_kernels.nvrtc import compile_ptx
from cupy_kernels.simulator import Fault, launch, load
from tests.cupy_kernels.sampler import SAMPLER

from .correct import KERNELS, LAUNCHES, source

SYNCHRONISES = re.compile(
    r"__sync(?:threads|warp)\([^)]*\);|(?<![.\w] )\b(?:wait<\d>|commit)\(\);"
    r'|asm volatile\("(?:bar\.\w+|cp\.async\.(?:wait|commit)\w*)[^;]*;"[^;]*;'
)
REDUNDANT = {
    ("flash1", 3): "the barrier at the end of the loop covers the reads of sP; l and m are written "
    "by the lane that read them, after shuffles with the others",
}


def mutants(text):
    """(number, line, source without that one call) for every synchronising call of a kernel."""
    found = [m for m in SYNCHRONISES.finditer(text) if not _in_definition(text, m)]
    for number, match in enumerate(found, 1):
        line = text.count("\n", 0, match.start()) + 1
        yield number, line, text[: match.start()] + ";" + text[match.end() :]


def _in_definition(text, match):
    line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    return "__device__" in line


def _all():
    for path in sorted(KERNELS.glob("*.cu")):
        yield from ((path.stem, number) for number, _, _ in mutants(path.read_text()))


def _all_of_the_sampler():
    for name, case in SAMPLER.items():
        yield from ((name, number) for number, _, _ in mutants(case.source))


def _mutant(text, number):
    return next(mutated for n, _, mutated in mutants(text) if n == number)


@pytest.mark.parametrize(("kernel", "number"), list(_all()))
def test_removal_is_noticed(kernel, number):
    started = LAUNCHES[kernel]()
    try:
        started.run(_mutant(source(kernel), number), f"{kernel}.cu", kernel)
    except Fault as fault:
        assert (kernel, number) not in REDUNDANT, f"listed as redundant, but: {fault}"
        assert fault.place is not None and fault.block is not None
        return
    if (kernel, number) in REDUNDANT:
        assert started.wrong() == []
    else:
        assert started.wrong(), "neither reported nor wrong"


REDUNDANT_IN_THE_SAMPLER = {
    ("compare_and_swap_loop", 1): "it orders nothing: the lanes meet, so that the card's last "
    "store is one request",
}


@pytest.mark.parametrize(("name", "number"), list(_all_of_the_sampler()))
def test_removal_in_the_sampler_is_noticed(name, number):
    case = SAMPLER[name]
    arguments, expected = case.arguments()
    text = _mutant(case.source, number)
    kernel = load(compile_ptx(text, filename=case.file.name).text, text, case.file.name).kernels[
        case.kernel
    ]
    values = tuple(arguments.values())
    try:
        counts = launch(kernel, case.grid, case.block, values, shared_bytes=case.shared_bytes)
    except Fault as fault:
        assert (name, number) not in REDUNDANT_IN_THE_SAMPLER, str(fault)
        return
    noticed = case.differences(arguments, expected) or counts.warnings
    assert bool(noticed) != ((name, number) in REDUNDANT_IN_THE_SAMPLER)
