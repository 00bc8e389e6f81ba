"""Warp-collective instructions; the arithmetic is in ``warp_ops``."""

from __future__ import annotations

from ..ptx import Instruction, Vector
from .table import opcode


def _pair(operand) -> tuple:
    return operand.items if isinstance(operand, Vector) else (operand, None)


@opcode("shfl", "sync up down bfly idx b32")
def shfl(g, i: Instruction) -> None:
    """d|p = a of another lane; p says whether that lane was in range."""
    dest, in_range = _pair(i.operands[0])
    a, b, c, members = (g.read(o, "u4") for o in i.operands[1:5])
    mode = i.modifiers[1]
    value = g.temporary(f"warp.shuffle({mode!r}, {a}, {b}, {c}, {members}, {g.mask()}, {i.index})")
    g.write(dest, "u4", f"{value}[0]")
    if in_range is not None:
        g.write(in_range, "?", f"{value}[1]")


@opcode("vote", "sync all any uni ballot pred b32")
def vote(g, i: Instruction) -> None:
    """d = what the member lanes' predicates say together."""
    predicate, members = g.predicate(i, 1), g.read(i.operands[2], "u4")
    mode = i.modifiers[1]
    call = f"warp.vote({mode!r}, {predicate}, {members}, {g.mask()}, {i.index})"
    g.write(i.operands[0], "u4" if mode == "ballot" else "?", call)


@opcode("match", "any all sync b32 b64")
def match(g, i: Instruction) -> None:
    """d = mask of the member lanes with the same value."""
    dest, agree = _pair(i.operands[0])
    value, members = g.source(i, 1), g.read(i.operands[2], "u4")
    result = g.temporary(
        f"warp.match({i.modifiers[0]!r}, {value}, {members}, {g.mask()}, {i.index})"
    )
    g.write(dest, "u4", f"{result}[0]")
    if agree is not None:
        g.write(agree, "?", f"{result}[1]")


@opcode("redux", "sync add min max and or xor u32 s32 b32 f32 abs NaN")
def redux(g, i: Instruction) -> None:
    """d = reduction over the member lanes."""
    value, members = g.source(i, 1), g.read(i.operands[2], "u4")
    call = f"warp.reduce({i.modifiers[1]!r}, {value}, {members}, {g.mask()}, {i.index})"
    g.write(i.operands[0], g.dtype(i), call)


@opcode("activemask", "b32")
def activemask(g, i: Instruction) -> None:
    """d = the lanes of this warp that execute together now."""
    g.write(i.operands[0], "u4", f"warp.active_mask({g.mask()})")


@opcode("elect", "sync")
def elect(g, i: Instruction) -> None:
    """d|p = the elected lane; p is true in it alone."""
    dest, chosen = _pair(i.operands[0])
    members = g.read(i.operands[1], "u4")
    result = g.temporary(f"warp.elect({members}, {g.mask()}, {i.index})")
    g.write(dest, "u4", f"{result}[0]")
    g.write(chosen, "?", f"{result}[1]")
