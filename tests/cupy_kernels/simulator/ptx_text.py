"""Small PTX texts for the tests: a kernel around a body."""

HEAD = """.version 8.0
.target sm_90a
.address_size 64
"""
REGISTERS = """.reg .pred %p<8>;
.reg .b16 %h<8>;
.reg .b32 %r<32>;
.reg .f32 %f<16>;
.reg .b64 %rd<16>;
"""


def kernel(body: str, parameters: str = ".param .u64 p", before: str = "") -> str:
    """A module with one entry ``k``; ``%rd0`` is the first parameter plus 4 bytes a thread."""
    prologue = """ld.param.u64 %rd1, [p];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mad.lo.s32 %r3, %r1, %r2, %r0;
mul.wide.s32 %rd2, %r3, 4;
add.s64 %rd0, %rd1, %rd2;
"""
    entry = f".visible .entry k({parameters})"
    return f"{HEAD}{before}{entry}\n{{\n{REGISTERS}{prologue}{body}\nret;\n}}\n"
