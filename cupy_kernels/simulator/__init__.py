"""A SIMT simulator for PTX: runs NVRTC's output in NumPy, counts traffic and catches bugs.

    program = load(ptx, source)
    counts = launch(program.kernels["kernel"], (blocks,), (threads,), [array, np.int32(n)])

How it is made, in the order in which a kernel passes through it:

======================  ==========================================================================
parser, source_lines    PTX text to instructions with their CUDA source lines
calls, cfg              device calls expanded; basic blocks, post-dominators
instructions/           every opcode's meaning, one family a file; ``TABLE`` is the allow-list
codegen                 blocks to Python functions of NumPy calls
launch, scheduler       waves of blocks, divergence, barriers, limits
addresses, access       lane addresses as pattern + offset; sectors and bank wavefronts
global_memory, ...      one file a state space; sites check and log every access
ordering, shadow        who wrote and read each shared cell, and what orders it
global_races            races between blocks
async_copy              cp.async, completed as late as the rules allow
warp_ops, tensor_core   shfl, vote, ...; ldmatrix and mma fragments
counters, faults        what comes out
======================  ==========================================================================
"""

from .counters import ArrayTraffic, Counts, InstructionCounts, LaunchCounts, LineCounts
from .faults import Fault, LaunchError, Party, Place, PtxError
from .kernel import Kernel, Parameter, Program
from .launch import Limits, launch


def load(ptx: str, source: str = "", filename: str = "kernel.cu") -> Program:
    """Parse a PTX module. ``source`` and ``filename`` are the CUDA text it was compiled from.

    Raises ``PtxError`` for syntax, opcodes or modifiers that the simulator does not know.
    """
    return Program(ptx, source, filename)


__all__ = [
    "ArrayTraffic",
    "Counts",
    "Fault",
    "InstructionCounts",
    "Kernel",
    "LaunchCounts",
    "LaunchError",
    "Limits",
    "LineCounts",
    "Parameter",
    "Party",
    "Place",
    "Program",
    "PtxError",
    "launch",
    "load",
]
