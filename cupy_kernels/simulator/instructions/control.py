"""Branches, exits, block barriers, fences and runtime calls.

A control instruction ends its block; ``g.finish`` hands the scheduler what it needs: a branch
predicate, a branch index, or a barrier's id, count and predicate.
"""

from __future__ import annotations

from ..faults import PtxError
from ..ptx import Imm, Instruction
from .table import opcode


@opcode("bra", "uni", dests=0)
def bra(g, i: Instruction) -> None:
    """Jump; the guard is the branch predicate."""
    g.finish(g.guard(i) or "None")


@opcode("brx", "idx uni", dests=0)
def brx(g, i: Instruction) -> None:
    """Jump through a table of labels."""
    if i.guard:
        raise PtxError(f"PTX line {i.ptx_line}: a guarded brx.idx is not simulated: {i.text}")
    g.finish(g.read(i.operands[0], "u4"))


@opcode("ret exit", "uni", dests=0)
def leave(g, i: Instruction) -> None:
    """The lanes (those whose guard holds) end."""
    g.finish(g.guard(i) or "None")


@opcode("trap brkpt", "", dests=0)
def trap(g, i: Instruction) -> None:
    """Stop the launch with an error."""
    g.line(f"launch.trap({g.mask()}, {i.index})")


_BARRIER = "sync arrive red aligned cta warp popc and or pred u32"


@opcode("bar barrier", _BARRIER)
def barrier(g, i: Instruction) -> None:
    """Block barriers; ``bar.warp.sync`` concerns the lanes of its mask only."""
    if "warp" in i.modifiers:
        g.line(f"warp.synchronise({g.read(i.operands[0], 'u4')}, {g.mask()}, {i.index})")
        return
    operands = list(i.operands)
    predicate = "None"
    if "red" in i.modifiers:
        predicate = g.predicate(i, len(operands) - 1)
        operands = operands[1:-1]
    name = g.read(operands[0], "u4") if operands else g.code.constant(Imm(0), "u4")
    count = g.read(operands[1], "u4") if len(operands) > 1 else "None"
    g.finish(f"({name}, {count}, {predicate})")


@opcode(
    "membar fence",
    "cta gl sys cluster gpu sc acq_rel acquire release proxy alias level",
    dests=0,
)
def fence(g, i: Instruction) -> None:
    """Orders this thread's global accesses before its later ones, as other blocks see them."""
    if not {"gl", "gpu", "sys"}.isdisjoint(i.modifiers):
        g.line(f"launch.fences.fence({g.mask()})")


@opcode("call", "uni", dests=0)
def call(g, i: Instruction) -> None:
    """Runtime calls: vprintf and __assertfail (all others were expanded)."""
    returns, arguments = i.operands
    offsets = ", ".join(str(g.code.symbols[name]) for name in arguments)
    back = g.code.symbols[returns[0]] if returns else None
    g.line(f"launch.{i.target.strip('_')}({g.mask()}, {i.index}, {back}, {offsets})")


@opcode("pragma griddepcontrol", "launch_dependents wait", dests=0)
def ignored(g, i: Instruction) -> None:
    """Hints without an effect on results."""
