"""Moves, packing and address-space conversion."""

from __future__ import annotations

import numpy as np

from ..address_space import LOCAL_BASE, SHARED_BASE
from ..ptx import Instruction, Vector
from .table import dtype_of, opcode


def pack(*parts):
    """Narrow values, low part first, into one wider unsigned register."""
    width = parts[0].dtype.itemsize * len(parts)
    kind = np.dtype(f"u{width}")
    result = parts[0].astype(kind)
    for n, part in enumerate(parts[1:], 1):
        result = result | (part.astype(kind) << kind.type(8 * n * part.dtype.itemsize))
    return result


@opcode("mov", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 f16 bf16 f16x2 bf16x2 pred")
def mov(g, i: Instruction) -> None:
    """d = a; with braces it packs or unpacks; a symbol gives its address."""
    dest, source = i.operands
    if isinstance(dest, Vector):
        _unpack(g, i, dest, source)
    elif isinstance(source, Vector):
        width = np.dtype(g.dtype(i)).itemsize // len(source.items)
        parts = ", ".join(g.read(item, f"u{width}") for item in source.items)
        g.write(dest, g.dtype(i).replace("f", "u").replace("i", "u"), f"moves.pack({parts})")
    elif g.in_family(i):
        g.write_pair(dest, f"({g.pair_of(source)})")
    else:
        g.write_typed(i, "{}", 1)


def _unpack(g, i: Instruction, dest: Vector, source) -> None:
    dtype = f"u{np.dtype(g.dtype(i)).itemsize}"
    width = int(dtype[1]) // len(dest.items)
    value = g.temporary(g.read(source, dtype))
    for n, item in enumerate(dest.items):
        shift = f"({value} >> {dtype}({8 * width * n}))" if n else value
        g.write(item, f"u{width}", f"{shift}.astype(u{width})")


@opcode("cvta", "to global shared local const param u32 u64 cta shared::cta")
def cvta(g, i: Instruction) -> None:
    """Between a state space's own addresses and generic ones."""
    bases = {"shared": SHARED_BASE, "shared::cta": SHARED_BASE, "local": LOCAL_BASE}
    base = next((bases[m] for m in i.modifiers if m in bases), 0)
    if g.in_family(i) and not base:
        g.write_pair(i.operands[0], f"({g.pair_of(i.operands[1])})")
        return
    value = g.source(i, 1, "s64")
    shift = -base if "to" in i.modifiers else base
    g.write(i.operands[0], "i8", f"{value} + i8({shift})" if shift else value)


@opcode("isspacep", "global shared local const shared::cta")
def isspacep(g, i: Instruction) -> None:
    """Predicate: does a generic address lie in the space."""
    value = g.source(i, 1, "s64")
    space = i.type.split("::")[0]
    shared, local = (f"(({value} >> i8(40)) == i8({b >> 40}))" for b in (SHARED_BASE, LOCAL_BASE))
    test = {"shared": shared, "local": local, "global": f"~({shared} | {local})"}.get(space)
    g.write(i.operands[0], "?", test or f"np.zeros_like({value}, bool)")


@opcode("nop nanosleep", "u32", dests=0)
def nothing(g, i: Instruction) -> None:
    """Time does not pass here."""


__all__ = ["cvta", "dtype_of", "isspacep", "mov", "nothing", "pack"]
