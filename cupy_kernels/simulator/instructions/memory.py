"""Loads, stores, atomics and asynchronous copies in every state space."""

from __future__ import annotations

import numpy as np

from ..async_copy import CopySite
from ..atomics import AtomicSite
from ..faults import PtxError
from ..generic_memory import GenericLoad, GenericStore
from ..global_memory import GlobalLoad, GlobalStore
from ..local_memory import LocalLoad, LocalStore
from ..ptx import Address, Imm, Instruction, Reg, Vector
from ..shared_memory import SharedLoad, SharedLoadGroup, SharedStore
from .table import dtype_of, opcode

_ORDER = "volatile weak relaxed acquire release acq_rel mmio cta cluster gpu sys"
_SPACES = "global shared shared::cta local const param param::entry param::func"
_CACHE = "ca cg cs lu cv wb wt nc nc L1::evict_normal L1::evict_first L1::evict_last"
_CACHE += " L1::evict_unchanged L1::no_allocate L2::64B L2::128B L2::256B L2::cache_hint"
_TYPES = "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64"
_SITES = {
    "global": (GlobalLoad, GlobalStore),
    "const": (GlobalLoad, GlobalStore),
    "shared": (SharedLoad, SharedStore),
    "local": (LocalLoad, LocalStore),
    "param": (LocalLoad, LocalStore),
    "": (GenericLoad, GenericStore),
}


def space_of(i: Instruction) -> str:
    """The state space named by an instruction; empty for generic addresses."""
    for modifier in i.modifiers:
        plain = modifier.split("::")[0]
        if plain in ("global", "shared", "local", "const", "param"):
            return plain
    return ""


def _value_dtype(i: Instruction) -> str:
    return dtype_of(i.type, i)


def _values(operand) -> tuple:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _site(g, i: Instruction, space: str, which: int, count: int) -> str:
    dtype = _value_dtype(i)
    width = np.dtype(dtype).itemsize
    kind = _SITES[space][which]

    def make(launch):
        site = kind(launch, i, width, count, dtype)
        if space == "param":
            site.counted = False
        return site

    return g.site(make)


@opcode("ld ldu", f"{_ORDER} {_SPACES} {_CACHE} v2 v4 v8 {_TYPES}")
def ld(g, i: Instruction) -> None:
    """d = [a], one to eight elements."""
    space = space_of(i)
    dests = _values(i.operands[0])
    if space == "param" and g.is_kernel_parameter(i.operands[1]):
        _load_parameter(g, i, dests)
        return
    group = g.group_of(i)
    if group is not None:
        _load_from_group(g, i, dests, *group)
        return
    p, o = g.address(i.operands[1])
    call = f"{_site(g, i, space, 0, len(dests))}({p}, {o}, {g.mask()})"
    if len(dests) == 1:
        g.write(dests[0], _value_dtype(i), f"{call}[0]")
        return
    value = g.temporary(call)
    for n, dest in enumerate(dests):
        g.write(dest, _value_dtype(i), f"{value}[{n}]")


def can_join_group(i: Instruction) -> bool:
    """True for plain shared loads through a register: neighbours of one line go together."""
    if i.root != "ld" or space_of(i) != "shared" or i.guard is not None:
        return False
    return "volatile" not in i.modifiers and isinstance(i.operands[1].base, Reg)


def _load_from_group(g, i: Instruction, dests: tuple, members: list, position: int) -> None:
    """The first load of a group reads for all; every load then picks its part."""
    dtype, count = _value_dtype(i), len(dests)
    if position == 0:
        width = np.dtype(dtype).itemsize
        offsets = [m.operands[1].offset for m in members]

        def make(launch):
            sites = [SharedLoad(launch, m, width, count, dtype) for m in members]
            return SharedLoadGroup(launch, sites, offsets)

        p, o = g.address(Address(i.operands[1].base, 0))
        name = g.site(make, f"g{i.index}_{len(members)}")
        g.groups[members[0].index] = g.temporary(f"{name}({p}, {o}, {g.mask()})")
    whole = g.groups[members[0].index]
    for n, dest in enumerate(dests):
        g.write_part(dest, dtype, whole, position * count + n)


def _load_parameter(g, i: Instruction, dests: tuple) -> None:
    address = i.operands[1]
    offset = g.parameter_offset(address.base.name) + address.base.offset + address.offset
    dtype = _value_dtype(i)
    for n, dest in enumerate(dests):
        at = offset + n * np.dtype(dtype).itemsize
        g.write(dest, dtype, g.parameter(at, dtype))


@opcode("st", f"{_ORDER} {_SPACES} {_CACHE} v2 v4 v8 {_TYPES}", dests=0)
def st(g, i: Instruction) -> None:
    """[a] = b, one to eight elements."""
    values = _values(i.operands[1])
    p, o = g.address(i.operands[0])
    arrays = ", ".join(g.read(v, _value_dtype(i)) for v in values)
    site = _site(g, i, space_of(i), 1, len(values))
    g.line(f"{site}({p}, {o}, {g.mask()}, {arrays})")


_OPERATIONS = ("add", "and", "or", "xor", "exch", "cas", "inc", "dec", "min", "max")
_ATOMIC = f"{_ORDER} {_SPACES} {_TYPES} f16 f16x2 bf16 bf16x2 noftz v2 v4 L2::cache_hint"
_ATOMIC += f" {' '.join(_OPERATIONS)}"


@opcode("atom", _ATOMIC)
def atom(g, i: Instruction) -> None:
    """d = old [a]; [a] = op([a], b, c), indivisibly."""
    _atomic(g, i, i.operands[0], i.operands[1], i.operands[2:])


@opcode("red", _ATOMIC, dests=0)
def red(g, i: Instruction) -> None:
    """[a] = op([a], b), indivisibly, without the old value."""
    _atomic(g, i, None, i.operands[0], i.operands[1:])


def _atomic(g, i: Instruction, dest, address, operands) -> None:
    dtype = _value_dtype(i)
    operation = next(m for m in i.modifiers if m in _OPERATIONS)
    p, o = g.address(address)
    vectors = [_values(v) for v in operands]
    count = len(vectors[0])
    if count > 1 and operation != "add":
        raise PtxError(f"PTX line {i.ptx_line}: vector atomics are simulated for add: {i.text}")
    arrays = ", ".join(g.read(v, dtype) for v in (v for vector in vectors for v in vector))
    site = g.site(
        lambda launch: AtomicSite(launch, i, dtype, count, operation, space_of(i), dest is not None)
    )
    call = f"{site}({p}, {o}, {g.mask()}, {arrays})"
    if dest is None:
        g.line(call)
        return
    value = g.temporary(call)
    for n, register in enumerate(_values(dest)):
        g.write(register, dtype, f"{value}[{n}]")


@opcode("prefetch prefetchu", "global local L1 L2 tensormap L2::evict_last", dests=0)
def prefetch(g, i: Instruction) -> None:
    """A cache hint: nothing moves that is counted."""


@opcode(
    "cp",
    "async ca cg shared shared::cta global commit_group wait_group wait_all "
    "L2::64B L2::128B L2::256B L2::cache_hint",
    dests=0,
)
def cp(g, i: Instruction) -> None:
    """cp.async: copies that land at the wait that names their group."""
    if "commit_group" in i.modifiers:
        g.line(f"copies.commit({g.mask()})")
    elif "wait_group" in i.modifiers:
        count = i.operands[0]
        if not isinstance(count, Imm):
            raise PtxError(f"PTX line {i.ptx_line}: wait_group needs a constant: {i.text}")
        g.line(f"copies.wait({count.value}, {g.mask()}, {i.index})")
    elif "wait_all" in i.modifiers:
        g.line(f"copies.wait(0, {g.mask()}, {i.index}, True)")
    else:
        _copy(g, i)


def _copy(g, i: Instruction) -> None:
    to, source, size = i.operands[:3]
    if not isinstance(size, Imm):
        raise PtxError(f"PTX line {i.ptx_line}: cp.async needs a constant size: {i.text}")
    allowed = (16,) if "cg" in i.modifiers else (4, 8, 16)
    if size.value not in allowed:
        raise PtxError(f"PTX line {i.ptx_line}: cp.async of {size.value} bytes: {i.text}")
    tp, to_offset = g.address(to)
    sp, so = g.address(source)
    extra = "None"
    hinted = "L2::cache_hint" in i.modifiers
    rest = i.operands[3:-1] if hinted else i.operands[3:]
    if rest:
        extra = g.read(rest[0], "u4")
    site = g.site(lambda launch: CopySite(launch, i, size.value))
    g.line(f"{site}({tp}, {to_offset}, {sp}, {so}, {extra}, {g.mask()})")
