"""Matrix instructions: ldmatrix, stmatrix, mma.sync; the arithmetic is in ``tensor_core``."""

from __future__ import annotations

from ..faults import PtxError
from ..ptx import Instruction
from ..tensor_core import SHAPES, MatrixLoad, MatrixStore, Mma
from .table import opcode


def _count(i: Instruction) -> int:
    return int(next(m for m in i.modifiers if m in ("x1", "x2", "x4"))[1])


@opcode("ldmatrix", "sync aligned m8n8 x1 x2 x4 trans shared shared::cta b16")
def ldmatrix(g, i: Instruction) -> None:
    """d = one to four 8×8 matrices of 16-bit elements."""
    p, o = g.address(i.operands[1])
    count, trans = _count(i), "trans" in i.modifiers
    site = g.site(lambda launch: MatrixLoad(launch, i, count, trans))
    value = g.temporary(f"{site}({p}, {o}, {g.mask()})")
    for n, dest in enumerate(i.operands[0].items):
        g.write(dest, "u4", f"{value}[{n}]")


@opcode("stmatrix", "sync aligned m8n8 x1 x2 x4 trans shared shared::cta b16", dests=0)
def stmatrix(g, i: Instruction) -> None:
    """Store one to four 8×8 matrices of 16-bit elements."""
    p, o = g.address(i.operands[0])
    count, trans = _count(i), "trans" in i.modifiers
    site = g.site(lambda launch: MatrixStore(launch, i, count, trans))
    values = ", ".join(g.read(v, "u4") for v in i.operands[1].items)
    g.line(f"{site}({p}, {o}, {g.mask()}, {values})")


_KINDS = "f16 bf16 tf32 f32 f64 s8 u8 s32 e4m3 e5m2"


@opcode("mma", f"sync aligned m16n8k8 m16n8k16 m16n8k32 row col satfinite kind::f8f6f4 {_KINDS}")
def mma(g, i: Instruction) -> None:
    """D = A·B + C on one warp's fragments."""
    shape = next(m for m in i.modifiers if m.startswith("m16"))
    to, a, b, c = i.modifiers[-4:]
    if (shape, a) not in SHAPES or "satfinite" in i.modifiers or to != c:
        raise PtxError(f"PTX line {i.ptx_line}: this mma is not simulated: {i.text}")
    kind = {"s32": "i4", "f32": "f4", "f16": "u4"}[to]
    site = g.site(lambda launch: Mma(launch, i, shape, a, b, to))
    parts = [
        "(" + ", ".join(g.read(r, "u4" if n < 2 else kind) for r in operand.items) + ",)"
        for n, operand in enumerate(i.operands[1:4])
    ]
    value = g.temporary(f"{site}({', '.join(parts)}, {g.mask()})")
    for n, dest in enumerate(i.operands[0].items):
        g.write(dest, kind, f"{value}[{n}]")
