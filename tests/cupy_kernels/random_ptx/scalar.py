"""A plain PTX interpreter: one thread at a time, one instruction at a time, Python integers.

It shares no code with the simulator and reads only what `generator.py` writes. A thread runs until
a barrier or its end; a barrier opens when every thread of the block that has not ended waits at it.
"""

import itertools
import math
import re
import struct

from tests.cupy_kernels.sampler import exact
from tests.cupy_kernels.sampler.exact import F16, F32

STATEMENT = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*([^;]*);")
BUFFER_SPACING = 1 << 28


def run(ptx, grid, block, buffers):
    """Run the one kernel of `ptx` over `buffers` (bytearrays, one a parameter), changing them."""
    program, labels, sizes = _parse(ptx)
    for b in range(grid):
        shared = bytearray(sizes["shared"])
        threads = [
            _Thread(program, labels, buffers, shared, bytearray(sizes["local"]), b, t, block).run()
            for t in range(block)
        ]
        while threads:  # each round takes every thread to the next barrier; those that end drop out
            threads = [t for t in threads if next(t, None) == "barrier"]


def _parse(ptx):
    body = ptx[ptx.index("{") + 1 : ptx.rindex("}")]
    program, labels, sizes = [], {}, {"shared": 0, "local": 0}
    for line in filter(None, map(str.strip, body.splitlines())):
        if array := re.match(r"\.(shared|local) .*\[(\d+)\];", line):
            sizes[array[1]] = int(array[2])
        elif line.endswith(":"):
            labels[line[:-1]] = len(program)
        elif not line.startswith("."):
            negated, guard, opcode, operands = STATEMENT.fullmatch(line).groups()
            program.append((guard, bool(negated), opcode.split("."), re.split(r",\s*", operands)))
    return program, labels, sizes


def _signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _typed(raw, kind):
    """Register bits as a value of PTX type `kind`."""
    bits = int(kind[1:])
    if kind == "f32":
        return struct.unpack("<f", struct.pack("<I", raw & 0xFFFFFFFF))[0]
    if kind == "f16":
        return F16.decode(raw & 0xFFFF)
    return _signed(raw, bits) if kind[0] == "s" else raw & ((1 << bits) - 1)


class _Thread:
    def __init__(self, program, labels, buffers, shared, local, block, thread, threads):
        self.program, self.labels, self.buffers = program, labels, buffers
        self.spaces = {"shared": shared, "local": local}
        specials = {"%tid.x": thread, "%ctaid.x": block, "%ntid.x": threads}
        self.registers = specials | {"%laneid": thread % 32}

    def run(self):
        """Execute to the end; yields "barrier" whenever it waits at one."""
        at = 0
        while at < len(self.program):
            guard, negated, opcode, operands = self.program[at]
            at += 1
            if guard and bool(self.registers[guard]) == negated:
                continue
            if opcode[0] in ("ret", "exit"):
                return
            if opcode[0] == "bar":
                yield "barrier"
            elif opcode[0] == "bra":
                at = self.labels[operands[0]]
            else:
                self._execute(opcode, operands)

    def _execute(self, opcode, operands):
        root, kind = opcode[0], opcode[-1]
        if root == "ld":
            self._load(opcode[1], kind, *operands)
        elif root == "st":
            data, at = self._cell(opcode[1], operands[0], int(kind[1:]) // 8)
            data[at] = self._raw(operands[1]).to_bytes(8, "little")[: int(kind[1:]) // 8]
        elif root == "red":
            self._reduce(opcode[1], opcode[2], kind, *operands)
        elif root == "setp":
            self._compare(opcode[1:-1], kind, *operands)
        elif root == "cvt":
            self._convert(opcode[1:-2], opcode[-2], kind, *operands)
        elif root in ("selp", "slct"):
            *_, test = operands
            first = self.registers[test] if root == "selp" else self._value(test, "s32") >= 0
            self._set(operands[0], kind, self._raw(operands[1 if first else 2]))
        elif kind == "pred":
            values = [self.registers[name] for name in operands[1:]]
            self.registers[operands[0]] = LOGIC[root](*values) & 1
        elif kind == "f32":
            self._float(root, opcode[1:-1], *operands)
        else:
            self._integer(root, opcode[1:-1], kind, *operands)

    def _raw(self, operand):
        if operand.startswith("%"):
            return self.registers[operand]
        if operand.startswith("0f"):
            return int(operand[2:], 16)
        return int(operand, 0) & (2**64 - 1) if operand[0] in "-0123456789" else 0

    def _value(self, operand, kind):
        return _typed(self._raw(operand), kind)

    def _set(self, name, kind, value):
        if kind[0] == "f" and not isinstance(value, int):
            value = FORMATS[kind].encode(value)
        self.registers[name] = value & ((1 << int(kind[1:])) - 1)

    def _cell(self, space, operand, size):
        base, _, offset = operand.strip("[]").partition("+")
        address = self._raw(base) + int(offset or 0)
        data = self.spaces.get(space)
        if space == "global":
            data = self.buffers[address // BUFFER_SPACING - 1]
            address %= BUFFER_SPACING
        return data, slice(address, address + size)

    def _load(self, space, kind, target, operand):
        if space == "param":
            value = (int(operand.strip("[]").rpartition("_")[2]) + 1) * BUFFER_SPACING
        else:
            data, at = self._cell(space, operand, int(kind[1:]) // 8)
            value = int.from_bytes(data[at], "little")
        value = _signed(value, int(kind[1:])) if kind[0] == "s" else value
        self._set(target, "b64" if kind[1:] == "64" else "b32", value)

    def _reduce(self, space, operation, kind, operand, source):
        data, at = self._cell(space, operand, 4)
        old = _typed(int.from_bytes(data[at], "little"), kind)
        result = ARITHMETIC.get(operation, LOGIC.get(operation))(old, self._value(source, kind))
        data[at] = (result & 0xFFFFFFFF).to_bytes(4, "little")

    def _compare(self, modifiers, kind, targets, a, b, c=None):
        x, y = self._value(a, kind), self._value(b, kind)
        hit = _holds(modifiers[0], x, y)
        results = [hit, not hit]
        if c:
            third = bool(self.registers[c.lstrip("!")]) != c.startswith("!")
            results = [LOGIC[modifiers[1]](int(r), int(third)) for r in results]
        for name, result in zip(targets.split("|"), results, strict=False):
            self.registers[name] = int(result)

    def _convert(self, modifiers, to, source_kind, target, source):
        value = self._value(source, source_kind)
        bits = int(to[1:])
        if to[0] == "f":
            value = value if isinstance(value, float) or value else 0.0
            code = FORMATS[to].encode(value, _rounding(modifiers))
            return self._set(target, f"b{bits}", code)
        low, high = (
            (-(1 << bits - 1), (1 << bits - 1) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
        )
        if source_kind[0] == "f":
            value = _whole(value, modifiers[0], low, high, bits)
        if "sat" in modifiers or source_kind[0] == "f":
            value = min(max(value, low), high)
        value = _signed(value, bits) if to[0] == "s" else value & ((1 << bits) - 1)
        return self._set(target, f"b{max(bits, 32)}", value)

    def _float(self, root, modifiers, target, *sources):
        values = [self._value(s, "f32") for s in sources]
        if root == "mov":
            return self._set(target, "b32", self._raw(sources[0]))
        mode = _rounding(modifiers)
        flush = _flushed if "ftz" in modifiers else lambda x: x
        result = FLOATS[root](*map(flush, values), mode)
        result = flush(F32.decode(F32.encode(result, mode)))
        if "sat" in modifiers:
            result = 0.0 if math.isnan(result) or result <= 0 else min(result, 1.0)
        return self._set(target, "f32", result)

    def _integer(self, root, modifiers, kind, target, *sources):
        bits = int(kind[1:])
        if root in BITS:
            raw = [self._raw(s) & ((1 << bits) - 1) for s in sources]
            result = BITS[root](bits, kind[0] == "s", modifiers, *raw)
            width = 32 if root in ("popc", "clz", "bfind") else bits
            return self._set(target, f"b{width}", result)
        values = [self._value(s, kind) for s in sources]
        if root == "mad":
            wide = 2 * bits if "wide" in modifiers else bits
            values[2] = self._value(sources[2], f"{kind[0]}{wide}")
        product = {"hi": bits, "lo": 0, "wide": 0}.get(modifiers[0] if modifiers else "lo", 0)
        if root in ("mul", "mad"):
            result = (values[0] * values[1] >> product) + sum(values[2:])
        else:
            result = (ARITHMETIC.get(root) or LOGIC[root])(*values)
        return self._set(target, f"b{2 * bits if 'wide' in modifiers else bits}", result)


FORMATS = {"f32": F32, "f16": F16}
MODES = {"rn": "rn", "rz": "rz", "rp": "ru", "rm": "rd"}


def _rounding(modifiers):
    return next((MODES[m] for m in modifiers if m in MODES), "rn")


LOGIC = {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "not": lambda x: ~x,
    "mov": lambda x: x,
}
ARITHMETIC = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "div": lambda x, y: abs(x) // y * (1 if x >= 0 else -1),
    "rem": lambda x, y: abs(x) % y * (1 if x >= 0 else -1),
    "min": min,
    "max": max,
    "abs": abs,
    "neg": lambda x: -x,
    "cnot": lambda x: int(x == 0),
    "sad": lambda x, y, z: z + abs(x - y),
}


def _holds(comparison, x, y):
    unordered = math.isnan(x) or math.isnan(y) if isinstance(x, float) else False
    if comparison in ("num", "nan"):
        return unordered == (comparison == "nan")
    alias = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(comparison, comparison)
    if unordered:
        return alias.endswith("u")
    name = alias[:2]
    return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[name]


def _whole(value, mode, low, high, bits):
    if math.isnan(value):  # of a float32, the only source that the programs convert
        return low or 1 << 63 if bits == 64 else 0
    if math.isinf(value):
        return high if value > 0 else low
    round_to = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
    return round_to[mode](value)


def _flushed(x):
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


def _extreme(x, y, larger):
    if math.isnan(x) or math.isnan(y):
        return y if math.isnan(x) else x
    return (max if larger else min)(x, y, key=lambda v: (v, math.copysign(1, v)))


FLOATS = {
    "add": exact.add,
    "sub": lambda x, y, mode: exact.add(x, -y, mode),
    "mul": exact.multiply,
    "fma": exact.fma,
    "div": exact.divide,
    "sqrt": exact.square_root,
    "min": lambda x, y, mode: _extreme(x, y, False),
    "max": lambda x, y, mode: _extreme(x, y, True),
    "neg": lambda x, mode: -x,
    "abs": lambda x, mode: abs(x),
}


def _shift_left(bits, signed, modifiers, x, y):
    return x << min(y & 0xFFFFFFFF, bits)


def _shift_right(bits, signed, modifiers, x, y):
    x = _signed(x, bits) if signed else x & ((1 << bits) - 1)
    return x >> min(y & 0xFFFFFFFF, bits)


def _bounds(bits, position, length):
    """The 32-bit forms read the low byte; the 64-bit forms are shifts, which saturate."""
    return (position & 255, length & 255) if bits == 32 else (min(position, 64), min(length, 64))


def _extract(bits, signed, modifiers, x, position, length):
    position, length = _bounds(bits, position & 0xFFFFFFFF, length & 0xFFFFFFFF)
    if length == 0:
        return 0
    x &= (1 << bits) - 1
    sign = x >> min(position + length - 1, bits - 1) & 1 if signed else 0
    picked = [x >> k & 1 if k < bits else sign for k in range(position, position + length)]
    picked = (picked + [sign] * bits)[:bits]
    return sum(bit << k for k, bit in enumerate(picked))


def _insert(bits, signed, modifiers, field, base, position, length):
    position, length = _bounds(bits, position & 0xFFFFFFFF, length & 0xFFFFFFFF)
    for k in range(min(length, max(bits - position, 0))):
        base = base & ~(1 << position + k) | (field >> k & 1) << position + k
    return base


def _permute(bits, signed, modifiers, x, y, selector):
    source = (y << 32 | x).to_bytes(8, "little")
    result = 0
    for k in range(4):
        nibble = selector >> 4 * k & 15
        byte = source[nibble & 7]
        result |= ((255 if byte & 128 else 0) if nibble & 8 else byte) << 8 * k
    return result


def _funnel(bits, signed, modifiers, low, high, amount):
    amount = amount & 31 if modifiers[1] == "wrap" else min(amount, 32)
    pair = high << 32 | low
    return pair << amount >> 32 if modifiers[0] == "l" else pair >> amount


def _find(bits, signed, modifiers, x):
    x = ~x & ((1 << bits) - 1) if signed and x >> bits - 1 & 1 else x
    return x.bit_length() - 1


def _table(bits, signed, modifiers, x, y, z, table):
    rows = ((x >> k & 1) * 4 + (y >> k & 1) * 2 + (z >> k & 1) for k in itertools.count())
    return sum((table >> row & 1) << k for k, row in zip(range(bits), rows, strict=False))


BITS = {
    "shl": _shift_left,
    "shr": _shift_right,
    "bfe": _extract,
    "bfi": _insert,
    "prmt": _permute,
    "shf": _funnel,
    "popc": lambda bits, signed, modifiers, x: x.bit_count(),
    "clz": lambda bits, signed, modifiers, x: bits - x.bit_length(),
    "brev": lambda bits, signed, modifiers, x: int(f"{x:0{bits}b}"[::-1], 2),
    "bfind": _find,
    "lop3": _table,
}
