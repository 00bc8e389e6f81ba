"""One random program in two places, and where what they leave behind differs."""

import numpy as np

from cupy_kernels.simulator import launch, load

from . import generator, scalar

THREADS = generator.GRID * generator.BLOCK


def buffers(seed):
    """Inputs, results and shared cells of a program, as they are before the launch."""
    cells = np.random.default_rng(seed).integers(0, 2**32, 8, dtype=np.uint32)
    return generator.inputs(seed), np.zeros(THREADS, generator.RESULT), cells


def simulated(seed):
    """Results and cells after a run in the simulator."""
    words, results, cells = buffers(seed)
    program = load(generator.program(seed), "", "random_program.ptx")
    arguments = (words, results.view(np.uint8), cells)
    launch(program.kernels["random_program"], generator.GRID, generator.BLOCK, arguments)
    return results, cells


def interpreted(seed):
    """Results and cells after a run in the scalar interpreter."""
    raw = [bytearray(array.tobytes()) for array in buffers(seed)]
    scalar.run(generator.program(seed), generator.GRID, generator.BLOCK, raw)
    return np.frombuffer(raw[1], generator.RESULT), np.frombuffer(raw[2], np.uint32)


def differences(got, want):
    """One line for each kind of register, and for the cells, that differs; any NaN equals any."""
    lines = []
    for name in generator.RESULT.names:
        ours, theirs = got[0][name], want[0][name]
        bits = f"u{ours.itemsize}"
        same = ours.view(bits) == theirs.view(bits)
        if name == "f":
            same |= np.isnan(ours) & np.isnan(theirs)
        for thread, register in np.argwhere(~same)[:1]:
            values = f"{ours[thread, register]}, not {theirs[thread, register]}"
            lines.append(
                f"%{name}{register} of thread {thread} is {values} ({(~same).sum()} in all)"
            )
    if (got[1] != want[1]).any():
        lines.append(f"global cells are {got[1].tolist()}, not {want[1].tolist()}")
    return lines
