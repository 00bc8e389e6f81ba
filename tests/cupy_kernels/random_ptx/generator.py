"""Random small PTX programs that are well defined, so that two interpreters must agree on them.

Integers live in %r and %d, floats in %f (a NaN's payload is never looked at), predicates in %p.
Programs branch, loop with bounds that differ from lane to lane, guard single instructions, and
exchange values through shared memory between barriers. No two threads touch one global cell except
by reductions, each cell with one kind of reduction, so the order of threads does not matter.
"""

import random

import numpy as np

BLOCK, GRID = 48, 2  # a ragged second warp
INPUTS = 16  # 32-bit words a thread may read
REGISTERS = {"r": 8, "d": 4, "f": 6, "p": 4}
R, D, F, P = (tuple(f"%{kind}{k}" for k in range(n)) for kind, n in REGISTERS.items())
# What a thread leaves behind: all its registers but the predicates.
RESULT = np.dtype([("r", "u4", len(R)), ("d", "u8", len(D)), ("f", "f4", len(F))])

PROLOGUE = f"""\
.version 8.0
.target sm_90a
.address_size 64

.visible .entry random_program(.param .u64 p_0, .param .u64 p_1, .param .u64 p_2)
{{
.reg .pred %p<8>;
.reg .b32 %r<16>;
.reg .b32 %t<16>;
.reg .f32 %f<8>;
.reg .b16 %h<4>;
.reg .b64 %d<8>;
.reg .b64 %a<8>;
.shared .align 8 .b8 tile[{4 * BLOCK + 32}];
.local .align 8 .b8 slots[32];
ld.param.u64 %a0, [p_0];
ld.param.u64 %a1, [p_1];
ld.param.u64 %a2, [p_2];
mov.u32 %t0, %tid.x;
mov.u32 %t1, %ctaid.x;
mov.u32 %t2, %ntid.x;
mad.lo.s32 %t3, %t1, %t2, %t0;
mul.wide.s32 %a3, %t3, {4 * INPUTS};
add.s64 %a0, %a0, %a3;
mul.wide.s32 %a3, %t3, {RESULT.itemsize};
add.s64 %a1, %a1, %a3;
mov.u32 %t4, tile;
shl.b32 %t5, %t0, 2;
add.s32 %t5, %t4, %t5;
"""


def inputs(seed):
    """The words that the program of `seed` reads: corners of integers and floats, and noise."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**32, (GRID * BLOCK, INPUTS), dtype=np.uint32)
    corners = np.array(
        [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xBF800000], np.uint32
    )
    mask = rng.random(words.shape) < 0.2
    words[mask] = rng.choice(corners, mask.sum())
    near_one = rng.standard_normal(words.shape).astype(np.float32).view(np.uint32)
    words[:, 10:] = np.where(
        rng.random((len(words), INPUTS - 10)) < 0.7, near_one[:, 10:], words[:, 10:]
    )
    return words


def program(seed):
    """The text of one random program."""
    return _Writer(random.Random(seed)).write()


def _byte(source):
    """A register, or a number as bfe and bfi take it: ptxas refuses one beyond 255."""
    return source if source.startswith("%") else str(int(source) & 255)


class _Writer:
    def __init__(self, rng):
        self.rng, self.lines, self.labels = rng, [], 0

    def write(self):
        self._begin()
        for _ in range(self.rng.randint(4, 7)):
            self._statements(self.rng.randint(2, 5), depth=0)
            self.rng.choice([self._exchange, self._exchange, self._early_work])()
        self._end()
        return PROLOGUE + "\n".join(self.lines) + "\n}\n"

    def _emit(self, text):
        self.lines.append(text)

    def _begin(self):
        for k, name in enumerate(R):
            self._emit(f"ld.global.u32 {name}, [%a0+{4 * k}];")
        for k, name in enumerate(D):
            self._emit(f"ld.global.u64 {name}, [%a0+{8 * k}];")
        for k, name in enumerate(F):
            self._emit(f"ld.global.f32 {name}, [%a0+{40 + 4 * k}];")
        for k, name in enumerate(P):
            self._emit(f"setp.lt.s32 {name}, {R[k]}, {R[k + 1]};")
        for k in range(8):
            self._emit(f"st.local.u32 [slots+{4 * k}], {R[k]};")
        self._emit("setp.lt.u32 %p4, %t0, 8;")
        self._emit(f"@%p4 st.shared.u32 [%t5+{4 * BLOCK}], 0;")
        self._emit("bar.sync 0;")

    def _end(self):
        self._emit("bar.sync 0;")
        self._emit("setp.lt.u32 %p4, %t0, 8;")
        self._emit(f"@%p4 ld.shared.u32 %t6, [%t5+{4 * BLOCK}];")
        self._emit("@%p4 add.u32 %r0, %r0, %t6;")
        offset = 0
        for width, names in ((4, R), (8, D), (4, F)):
            kind = {8: "u64", 4: "f32" if names is F else "u32"}[width]
            for name in names:
                self._emit(f"st.global.{kind} [%a1+{offset}], {name};")
                offset += width
        self._emit(f"@{self.rng.choice(P)} ret;")
        self._emit("red.global.add.u32 [%a2+28], 1;")
        self._emit("ret;")

    def _statements(self, count, depth):
        for _ in range(count):
            kind = self.rng.random()
            if depth < 3 and kind < 0.12:
                self._branch(depth)
            elif depth < 2 and kind < 0.22:
                self._loop(depth)
            else:
                self._instruction()

    def _label(self):
        self.labels += 1
        return f"L{self.labels}"

    def _predicate(self):
        return self.rng.choice(["", "!"]) + self.rng.choice(P)

    def _branch(self, depth):
        other, end = self._label(), self._label()
        has_else = self.rng.random() < 0.6
        self._emit(f"@{self._predicate()} bra {other if has_else else end};")
        self._statements(self.rng.randint(1, 4), depth + 1)
        if has_else:
            self._emit(f"bra {end};")
            self._emit(f"{other}:")
            self._statements(self.rng.randint(1, 4), depth + 1)
        self._emit(f"{end}:")

    def _loop(self, depth):
        """At most seven turns, a number that each lane has for itself, and perhaps a break."""
        top, end = self._label(), self._label()
        counter, test = f"%t{8 + depth}", f"%p{5 + depth}"
        self._emit(f"and.b32 {counter}, {self.rng.choice(R)}, 7;")
        self._emit(f"{top}:")
        self._emit(f"setp.eq.s32 {test}, {counter}, 0;")
        self._emit(f"@{test} bra {end};")
        self._emit(f"sub.s32 {counter}, {counter}, 1;")
        self._statements(self.rng.randint(1, 3), depth + 1)
        if self.rng.random() < 0.4:
            self._emit(f"@{self._predicate()} bra {end};")
        self._statements(1, depth + 1)
        self._emit(f"bra {top};")
        self._emit(f"{end}:")

    def _exchange(self):
        """Every thread leaves a word and takes another thread's."""
        step, shift = self.rng.choice([1, 5, 7, 11]), self.rng.randrange(BLOCK)
        self._emit(f"st.shared.u32 [%t5], {self.rng.choice(R)};")
        self._emit("bar.sync 0;")
        self._emit(f"mad.lo.u32 %t7, %t0, {step}, {shift};")
        self._emit(f"rem.u32 %t7, %t7, {BLOCK};")
        self._emit("shl.b32 %t7, %t7, 2;")
        self._emit("add.s32 %t7, %t4, %t7;")
        target = self.rng.choice(R)
        kind, offset = self.rng.choice([("u32", 0), ("s16", 2), ("u8", 1), ("s8", 3), ("u16", 0)])
        self._emit(f"ld.shared.{kind} {target}, [%t7+{offset}];")
        self._emit("bar.sync 0;")

    def _early_work(self):
        """Threads on one side of a predicate add to shared and global cells."""
        end = self._label()
        self._emit(f"@{self._predicate()} bra {end};")
        operations = ["add.u32", "max.s32", "min.u32", "xor.b32", "or.b32", "and.b32"]
        cell = self.rng.randrange(6)
        source = self.rng.choice(R)
        self._emit(f"red.shared.{operations[cell]} [%t4+{4 * BLOCK + 4 * cell}], {source};")
        cell = self.rng.randrange(6)
        self._emit(f"red.global.{operations[cell]} [%a2+{4 * cell}], {source};")
        self._emit(f"{end}:")

    def _instruction(self):
        text = self.rng.choice(
            [self._arithmetic, self._bits, self._float, self._compare] * 3
            + [self._convert, self._select, self._memory]
        )()
        guard = f"@{self._predicate()} " if self.rng.random() < 0.25 else ""
        for line in text[:-1]:
            self._emit(line)
        self._emit(guard + text[-1])

    def _r(self):
        """A 32-bit source: mostly a register, now and then a number."""
        number = str(self.rng.choice([0, 1, -1, 7, 31, 255, -128, 65537]))
        return self.rng.choice(R) if self.rng.random() < 0.85 else number

    def _arithmetic(self):
        sign, width = self.rng.choice("su"), self.rng.choice([32, 32, 64])
        kind, pool = f"{sign}{width}", R if width == 32 else D
        x, y, z = (self.rng.choice(pool) for _ in range(3))
        y = self._r() if width == 32 else y
        target = self.rng.choice(pool)
        form = self.rng.choice(["two", "two", "mul", "mad", "wide", "div", "one", "three"])
        if form == "two":
            return [f"{self.rng.choice(['add', 'sub', 'min', 'max'])}.{kind} {target}, {x}, {y};"]
        if form == "mul":
            return [f"mul.{self.rng.choice(['lo', 'hi'])}.{kind} {target}, {x}, {y};"]
        if form == "mad":
            return [f"mad.{self.rng.choice(['lo', 'hi'])}.{kind} {target}, {x}, {y}, {z};"]
        if form == "wide":
            tail = self.rng.choice(["mul.wide", "mad.wide"])
            addend = f", {self.rng.choice(D)}" if tail == "mad.wide" else ""
            return [
                f"{tail}.{sign}32 {self.rng.choice(D)}, {self.rng.choice(R)}, {self._r()}{addend};"
            ]
        if form == "div":
            temporary = "%t12" if width == 32 else "%a4"
            safe = [f"and.b{width} {temporary}, {x}, 32767;"]
            safe.append(f"or.b{width} {temporary}, {temporary}, 1;")
            root = self.rng.choice(["div", "rem"])
            return [*safe, f"{root}.{kind} {target}, {self.rng.choice(pool)}, {temporary};"]
        if form == "one":
            return [f"{self.rng.choice(['abs', 'neg'])}.s{width} {target}, {x};"]
        return [f"sad.{kind} {target}, {x}, {y}, {z};"]

    def _bits(self):
        width = self.rng.choice([32, 32, 64])
        pool = R if width == 32 else D
        x, y, target = (self.rng.choice(pool) for _ in range(3))
        amount, length = self._r(), self._r()
        at, count = _byte(amount), _byte(length)
        forms = [
            [f"{self.rng.choice(['and', 'or', 'xor'])}.b{width} {target}, {x}, {y};"],
            [f"{self.rng.choice(['not', 'cnot', 'brev'])}.b{width} {target}, {x};"],
            [f"shl.b{width} {target}, {x}, {amount};"],
            [f"shr.{self.rng.choice('us')}{width} {target}, {x}, {amount};"],
            [f"bfe.{self.rng.choice('us')}{width} {target}, {x}, {at}, {count};"],
            [f"bfi.b{width} {target}, {x}, {y}, {at}, {count};"],
            [f"{self.rng.choice(['popc', 'clz'])}.b{width} {self.rng.choice(R)}, {x};"],
            [f"bfind.{self.rng.choice('us')}{width} {self.rng.choice(R)}, {x};"],
            [f"prmt.b32 {self.rng.choice(R)}, {self.rng.choice(R)}, {self._r()}, {self._r()};"],
            [f"lop3.b32 {R[0]}, {self.rng.choice(R)}, {R[1]}, {R[2]}, {self.rng.randrange(256)};"],
            [
                f"shf.{self.rng.choice('lr')}.{self.rng.choice(['wrap', 'clamp'])}.b32 "
                f"{self.rng.choice(R)}, {self.rng.choice(R)}, {self.rng.choice(R)}, {amount};"
            ],
        ]
        return self.rng.choice(forms)

    def _float(self):
        x, y, z, target = (self.rng.choice(F) for _ in range(4))
        mode = self.rng.choice(["rn", "rn", "rz", "rp", "rm"])
        ftz, sat = self.rng.choice(["", "", "", ".ftz"]), self.rng.choice(["", "", "", ".sat"])
        forms = [
            f"{self.rng.choice(['add', 'sub', 'mul'])}.{mode}{ftz}{sat}.f32 {target}, {x}, {y};",
            f"fma.{mode}{ftz}{sat}.f32 {target}, {x}, {y}, {z};",
            f"{self.rng.choice(['min', 'max'])}{ftz}.f32 {target}, {x}, {y};",
            f"{self.rng.choice(['neg', 'abs'])}{ftz}.f32 {target}, {x};",
            f"div.rn.f32 {target}, {x}, {y};",
            f"sqrt.rn.f32 {target}, {x};",
            f"mov.b32 {target}, {self.rng.choice(R)};",
            f"mov.f32 {target}, 0f3FC00000;",
        ]
        return [self.rng.choice(forms)]

    def _compare(self):
        target = self.rng.choice(P)
        kind = self.rng.choice(["s32", "u32", "s64", "u64", "f32", "f32"])
        pool = {"f32": F, "s64": D, "u64": D}.get(kind, R)
        tests = ["eq", "ne", "lt", "le", "gt", "ge"]
        if kind == "f32":
            tests += ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
        if kind[0] == "u":
            tests += ["lo", "ls", "hi", "hs"]
        x, y = self.rng.choice(pool), self.rng.choice(pool)
        test = self.rng.choice(tests)
        form = self.rng.randrange(4)
        if form == 0:
            return [f"setp.{test}.{kind} {target}, {x}, {y};"]
        if form == 1:
            joined = self.rng.choice(["and", "or", "xor"])
            return [f"setp.{test}.{joined}.{kind} {target}, {x}, {y}, {self._predicate()};"]
        if form == 2:
            pair = self.rng.sample(P, 2)
            return [f"setp.{test}.{kind} {pair[0]}|{pair[1]}, {x}, {y};"]
        operation = self.rng.choice(["and", "or", "xor"])
        return [f"{operation}.pred {target}, {self.rng.choice(P)}, {self.rng.choice(P)};"]

    def _convert(self):
        r, d, f = self.rng.choice(R), self.rng.choice(D), self.rng.choice(F)
        mode = self.rng.choice(["rni", "rzi", "rmi", "rpi"])
        rounding = self.rng.choice(["rn", "rz", "rp", "rm"])
        forms = [
            [f"cvt.s64.s32 {d}, {r};"],
            [f"cvt.u64.u32 {d}, {r};"],
            [f"cvt.u32.u64 {r}, {d};"],
            [f"cvt.sat.s32.s64 {r}, {d};"],
            [f"cvt.{self.rng.choice(['s32.s8', 'u32.u8', 's32.s16', 'u32.u16'])} {r}, {R[3]};"],
            [f"cvt.sat.{self.rng.choice(['s8.s32', 'u8.s32'])} {r}, {R[5]};"],
            [f"cvt.{mode}.{self.rng.choice(['s32', 'u32'])}.f32 {r}, {f};"],
            [f"cvt.{mode}.{self.rng.choice(['s64', 'u64'])}.f32 {d}, {f};"],
            [f"cvt.{rounding}.f32.{self.rng.choice('su')}32 {f}, {r};"],
            [f"cvt.rn.f32.{self.rng.choice('su')}64 {f}, {d};"],
            [f"cvt.{self.rng.choice(['rn', 'rz'])}.f16.f32 %h0, {f};", f"cvt.f32.f16 {F[4]}, %h0;"],
        ]
        return self.rng.choice(forms)

    def _select(self):
        target, x = self.rng.choice(R), self.rng.choice(R)
        forms = [
            f"selp.b32 {target}, {x}, {self._r()}, {self.rng.choice(P)};",
            f"selp.f32 {self.rng.choice(F)}, {F[0]}, {F[1]}, {self.rng.choice(P)};",
            f"selp.b64 {self.rng.choice(D)}, {D[0]}, {D[1]}, {self.rng.choice(P)};",
            f"slct.u32.s32 {target}, {x}, {self._r()}, {self.rng.choice(R)};",
        ]
        return [self.rng.choice(forms)]

    def _memory(self):
        """Read a word of the thread's own input, or one of its local slots, by a computed index."""
        index = self.rng.choice(R)
        target = self.rng.choice(R)
        kind, mask = self.rng.choice(
            [("u32", 60), ("u8", 63), ("s8", 63), ("s16", 62), ("u16", 62)]
        )
        global_word = [
            f"and.b32 %t13, {index}, {mask};",
            "cvt.u64.u32 %a5, %t13;",
            "add.s64 %a5, %a0, %a5;",
            f"ld.global.{kind} {target}, [%a5];",
        ]
        slot = [
            "mov.u32 %t14, slots;",
            f"and.b32 %t13, {index}, 28;",
            "add.s32 %t13, %t14, %t13;",
            self.rng.choice(
                [f"ld.local.u32 {target}, [%t13];", f"st.local.u32 [%t13], {self.rng.choice(R)};"]
            ),
        ]
        return self.rng.choice([global_word, slot])
