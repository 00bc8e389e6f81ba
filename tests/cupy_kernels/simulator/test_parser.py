"""The grammar NVRTC uses: scopes, initialisers, two dialects, source places, strictness."""

import pytest

from cupy_kernels.simulator import PtxError, load
from cupy_kernels.simulator.parser import parse
from cupy_kernels.simulator.ptx import Address, Imm, Instruction, Label, Reg, Symbol, Vector

from .ptx_text import HEAD, kernel


def body(text: str) -> list:
    return parse(kernel(text)).functions["k"].body


def last(text: str) -> Instruction:
    return [i for i in body(text) if isinstance(i, Instruction)][-2]


def test_operands():
    i = last("ld.shared.v2.f32 {%f1, _}, [%r1+-8];")
    assert i.operands == [Vector((Reg("%f1"), Reg("_"))), Address(Reg("%r1"), -8)]
    assert (i.root, i.modifiers) == ("ld", ("shared", "v2", "f32"))


@pytest.mark.parametrize(
    ("written", "value"), [("-5", -5), ("0x1FU", 31), ("0f3F800000", 0x3F800000), ("017", None)]
)
def test_immediates(written, value):
    if value is None:
        with pytest.raises(PtxError, match="017"):
            last(f"mov.u32 %r4, {written};")
    else:
        assert last(f"mov.u32 %r4, {written};").operands[1].value == value


def test_guards_and_pairs():
    i = last("@!%p1 shfl.sync.down.b32 %r4|%p2, %r5, 1, 31, -1;")
    assert i.guard == Reg("%p1") and i.guard_negated
    assert i.operands[0] == Vector((Reg("%r4"), Reg("%p2")))
    assert i.operands[-1] == Imm(-1)


def test_inline_asm_scopes_get_names_of_their_own():
    scope = (
        "{ .reg .pred p; WAIT: setp.eq.s32 p, %r1, 0; { .reg .b32 p; mov.b32 p, 1; } @p bra WAIT; }"
    )
    items = body(scope + scope)
    labels = [i.name for i in items if isinstance(i, Label)]
    assert len(set(labels)) == 2
    branches = [i for i in items if isinstance(i, Instruction) and i.root == "bra"]
    assert [i.target for i in branches] == labels
    guards = {i.guard.name for i in branches}
    assert len(guards) == 2
    inner = {i.operands[0].name for i in items if isinstance(i, Instruction) and i.root == "mov"}
    assert guards.isdisjoint(inner)


def test_parameters_of_both_dialects():
    text = f"""{HEAD}.visible .entry k(.param .u64 .ptr .global .align 16 a,
    .param .align 8 .b8 b[24], .param .f32 c) .maxntid 128, 2 {{ ret; }}"""
    entry = parse(text).functions["k"]
    assert [(p.size, p.align) for p in entry.params] == [(8, 8), (24, 8), (4, 4)]
    assert entry.max_threads == 256
    assert [p.offset for p in load(text).kernels["k"].params] == [0, 8, 32]


def test_initialisers_and_pointers_between_variables():
    text = f""".const .align 4 .b8 C[8] = {{1, 2, 255, 4}};
.global .align 8 .u64 table[2] = {{C, generic(C)}};
.global .align 4 .u32 n = -1;
{kernel("mov.u64 %rd3, C+4;")}"""
    program = load(text.replace(".const", HEAD + ".const", 1).replace(HEAD, "", 0))
    assert program.variables["C"].tolist() == [1, 2, 255, 4, 0, 0, 0, 0]
    assert program.variables["n"].view("i4")[0] == -1
    pointers = program.variables["table"].view("u8")
    assert pointers[0] == pointers[1] == program.buffers["C"].base


def test_a_place_is_the_innermost_own_line_with_its_callers():
    files = '.file 1 "/tmp/k.cu"\n.file 2 "/usr/include/cuda_fp16.h"\n'
    locs = """.loc 1 9 1
.loc 1 3 5, function_name $x, inlined_at 1 9 1
.loc 2 70 5, function_name $y, inlined_at 1 3 5
mov.u32 %r4, 1;
.loc 1 0 0
mov.u32 %r4, 2;
"""
    source = "\n".join(f"line {n}" for n in range(1, 10))
    items = parse(kernel(locs) + files, source, "k.cu").functions["k"].body
    places = [i.place for i in items if isinstance(i, Instruction)][-3:]
    assert [p.line for p in places] == [3, 3, 3]
    assert places[0].text == "line 3" and places[0].call_lines == (9,)
    assert places[0].body_line == 9


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("frobnicate.u32 %r4, 1;", "frobnicate"),
        ("add.e4m3x2 %r4, %r5, %r6;", "e4m3x2"),
        ("ld.global.L7::sideways.u32 %r4, [%rd0];", "L7::sideways"),
        ("mov.u32 %q1, 1;", "%q1"),
        ("bra NOWHERE;", "NOWHERE"),
    ],
)
def test_what_is_unknown_is_named_before_anything_runs(text, named):
    with pytest.raises(PtxError, match=named.replace("%", "%")):
        _ = load(kernel(text)).kernels["k"].translation.code


def test_symbols_with_offsets():
    assert last("mov.u32 %r4, tile+12;").operands[1] == Symbol("tile", 12)
