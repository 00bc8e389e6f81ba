"""Logic, shifts and bit fields."""

from __future__ import annotations

import numpy as np

from ..faults import PtxError
from ..ptx import Imm, Instruction
from .table import opcode


def _logic(root: str, sign: str):
    @opcode(root, "b16 b32 b64 pred")
    def emit(g, i: Instruction) -> None:
        if i.type == "pred":
            a, b = g.predicate(i, 1), g.predicate(i, 2)
            g.write(i.operands[0], "?", f"{a} {sign} {b}")
        else:
            g.write_typed(i, f"{{}} {sign} {{}}", 1, 2)

    emit.__doc__ = f"d = a {sign} b."
    return emit


_logic("and", "&")
_logic("or", "|")
_logic("xor", "^")


@opcode("not", "b16 b32 b64 pred")
def bitwise_not(g, i: Instruction) -> None:
    """d = ~a."""
    g.write_typed(i, "~{}", 1)


@opcode("cnot", "b16 b32 b64")
def cnot(g, i: Instruction) -> None:
    """d = (a == 0)."""
    g.write(i.operands[0], g.dtype(i), f"({g.source(i, 1)} == 0).astype({g.dtype(i)})")


@opcode("lop3", "b32")
def lop3(g, i: Instruction) -> None:
    """Any bitwise function of three operands, given as a truth table."""
    a, b, c = (g.source(i, n) for n in (1, 2, 3))
    table = i.operands[4]
    if not isinstance(table, Imm):
        raise PtxError(f"PTX line {i.ptx_line}: lop3 needs a constant table: {i.text}")
    terms = [
        f"({'' if n & 4 else '~'}{a} & {'' if n & 2 else '~'}{b} & {'' if n & 1 else '~'}{c})"
        for n in range(8)
        if table.value >> n & 1
    ]
    g.write(i.operands[0], "u4", " | ".join(terms) if terms else f"{a} & u4(0)")


@opcode("shl", "b16 b32 b64")
def shl(g, i: Instruction) -> None:
    """d = a << b; amounts past the width give 0."""
    _shift(g, i, "<<")


@opcode("shr", "b16 b32 b64 u16 u32 u64 s16 s32 s64")
def shr(g, i: Instruction) -> None:
    """d = a >> b, arithmetic for signed types."""
    _shift(g, i, ">>")


def _shift(g, i: Instruction, sign: str) -> None:
    dtype, amount = g.dtype(i), i.operands[2]
    a = g.source(i, 1)
    if isinstance(amount, Imm):
        g.write(i.operands[0], dtype, f"{a} {sign} {g.read(amount, dtype)}")
    else:
        by = f"np.minimum({g.read(amount, 'u4')}, u4(64)).astype({dtype})"
        g.write(i.operands[0], dtype, f"{a} {sign} {by}")


def funnel(low, high, amount, left: bool, clamp: bool):
    """shf: shift the 64-bit value high:low and return one half."""
    amount = np.minimum(amount, 32) if clamp else amount & np.uint32(31)
    joined = low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))
    if left:
        return ((joined << amount.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
    return (joined >> amount.astype(np.uint64)).astype(np.uint32)


@opcode("shf", "l r wrap clamp b32")
def shf(g, i: Instruction) -> None:
    """Funnel shift of (b:a) by c."""
    a, b, c = (g.source(i, n) for n in (1, 2, 3))
    flags = f"{i.modifiers[0] == 'l'}, {'clamp' in i.modifiers}"
    g.write(i.operands[0], "u4", f"bits.funnel({a}, {b}, {c}, {flags})")


def count_leading_zeros(x):
    """Leading zero bits; the full width for 0."""
    width = 8 * x.dtype.itemsize
    result = np.full(x.shape, width, np.uint32)
    value, step = x.copy(), width // 2
    count = np.zeros(x.shape, np.uint32)
    while step:
        small = value < (x.dtype.type(1) << x.dtype.type(width - step))
        count += np.where(small, np.uint32(step), np.uint32(0))
        value = np.where(small, value << x.dtype.type(step), value)
        step //= 2
    return np.where(x == 0, result, count)


def reverse_bits(x):
    """Bits in opposite order."""
    width, one = x.dtype.itemsize, x.dtype.type
    for shift, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        pattern = one(int.from_bytes(bytes([mask]) * width, "little"))
        x = ((x >> one(shift)) & pattern) | ((x & pattern) << one(shift))
    return x.byteswap()


def find_leading(x, shift_amount: bool):
    """bfind: position of the highest set bit (of the highest non-sign bit), -1 if none."""
    if x.dtype.kind == "i":
        x = np.where(x < 0, ~x, x)
    unsigned = np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")
    zeros = count_leading_zeros(unsigned)
    width = np.uint32(8 * x.dtype.itemsize)
    found = zeros if shift_amount else width - np.uint32(1) - zeros
    return np.where(unsigned == 0, np.uint32(0xFFFFFFFF), found)


@opcode("popc", "b32 b64")
def popc(g, i: Instruction) -> None:
    """Number of set bits."""
    g.write(i.operands[0], "u4", f"np.bitwise_count({g.source(i, 1)}).astype(u4)")


@opcode("clz", "b32 b64")
def clz(g, i: Instruction) -> None:
    """Number of leading zeros."""
    g.write(i.operands[0], "u4", f"bits.count_leading_zeros({g.source(i, 1)})")


@opcode("brev", "b32 b64")
def brev(g, i: Instruction) -> None:
    """Bit reversal."""
    g.write_typed(i, "bits.reverse_bits({})", 1)


@opcode("bfind", "shiftamt u32 s32 u64 s64")
def bfind(g, i: Instruction) -> None:
    """Highest set bit."""
    amount = "shiftamt" in i.modifiers
    g.write(i.operands[0], "u4", f"bits.find_leading({g.source(i, 1)}, {amount})")


def field_bounds(position, length, width: int):
    """Position and length of a bit field as the hardware reads the two registers.

    The ISA promises a meaning for 0 to 255. Beyond it the 32-bit forms read the low byte, while
    ptxas builds the 64-bit forms from shifts, which saturate.
    """
    limit = np.uint32(255) if width == 32 else np.uint32(0xFFFFFFFF)
    return (np.minimum(x & limit, width).astype(np.uint64) for x in (position, length))


def shift_left(x, amount):
    """``x << amount`` of uint64, 0 from 64 on."""
    return np.where(amount < 64, x << np.minimum(amount, 63), np.uint64(0))


def extract_field(a, position, length):
    """bfe: ``length`` bits from ``position`` on, sign-extended for signed types."""
    position, length = field_bounds(position, length, 8 * a.dtype.itemsize)
    mask = shift_left(np.uint64(1), length) - np.uint64(1)
    if a.dtype.kind == "u":
        shifted = np.where(position < 64, a.astype(np.uint64) >> np.minimum(position, 63), 0)
        return (shifted & mask).astype(a.dtype)
    shifted = (a.astype(np.int64) >> np.minimum(position, 63).astype(np.int64)).view(np.uint64)
    sign = (shifted & mask) & ~(mask >> np.uint64(1)) != 0
    return np.where(sign, shifted | ~mask, shifted & mask).astype(a.dtype)


def insert_field(a, b, position, length):
    """bfi: the low ``length`` bits of a into b at ``position``."""
    position, length = field_bounds(position, length, 8 * b.dtype.itemsize)
    mask = shift_left(np.uint64(1), length) - np.uint64(1)
    moved = shift_left(a.astype(np.uint64) & mask, position).astype(b.dtype)
    return (b & ~shift_left(mask, position).astype(b.dtype)) | moved


@opcode("bfe", "u32 s32 u64 s64")
def bfe(g, i: Instruction) -> None:
    """Extract a bit field."""
    position, length = g.read(i.operands[2], "u4"), g.read(i.operands[3], "u4")
    call = f"bits.extract_field({g.source(i, 1)}, {position}, {length})"
    g.write(i.operands[0], g.dtype(i), call)


@opcode("bfi", "b32 b64")
def bfi(g, i: Instruction) -> None:
    """Insert a bit field."""
    a, b = g.source(i, 1), g.source(i, 2)
    position, length = g.read(i.operands[3], "u4"), g.read(i.operands[4], "u4")
    g.write(i.operands[0], g.dtype(i), f"bits.insert_field({a}, {b}, {position}, {length})")


def permute_bytes(a, b, selector):
    """prmt (default mode): four bytes out of b:a, bit 3 of a nibble replicates the sign."""
    joined = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.zeros(np.broadcast_shapes(joined.shape, selector.shape), np.uint64)
    for n in range(4):
        nibble = (selector >> np.uint32(4 * n)).astype(np.uint64)
        byte = (joined >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
        sign = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
        byte = np.where(nibble & np.uint64(8), sign, byte)
        result = result | (byte << np.uint64(8 * n))
    return result.astype(np.uint32)


# The six named modes: which byte of b:a each result byte is, by the two low bits of c.
PERMUTATIONS = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": tuple((n,) * 4 for n in range(4)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def named_selector(mode: str, c):
    """The nibbles that a named prmt mode stands for."""
    table = [sum(byte << 4 * n for n, byte in enumerate(row)) for row in PERMUTATIONS[mode]]
    return np.array(table, np.uint32)[c & np.uint32(3)]


@opcode("prmt", f"b32 {' '.join(PERMUTATIONS)}")
def prmt(g, i: Instruction) -> None:
    """Byte permutation."""
    a, b, c = (g.source(i, n, "b32") for n in (1, 2, 3))
    if i.type in PERMUTATIONS:
        c = f"bits.named_selector({i.type!r}, {c})"
    g.write(i.operands[0], "u4", f"bits.permute_bytes({a}, {b}, {c})")
