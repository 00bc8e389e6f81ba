"""printf in a kernel: the format string and its arguments, read from device memory."""

from __future__ import annotations

import re
import struct

from .address_space import AddressSpace

_SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp%])")


def read_string(space: AddressSpace, address: int) -> str:
    """The zero-terminated string at a global address."""
    buffer = space.find(address)
    if buffer is None:
        return f"<bad string pointer {address:#x}>"
    raw = buffer.bytes[address - buffer.base :].tobytes()
    return raw.split(b"\0", 1)[0].decode(errors="replace")


def format_message(template: str, address: int, read, space: AddressSpace) -> str:
    """Fill ``template`` with the packed arguments at local ``address``."""
    at = address

    def take(size: int, code: str):
        nonlocal at
        at = -(-at // size) * size
        value = struct.unpack("<" + code, read(at, size))[0]
        at += size
        return value

    def replace(match: re.Match) -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        width = str(take(4, "i")) if width == "*" else width or ""
        precision = str(take(4, "i")) if precision == "*" else precision
        form = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        if kind in "fFeEgGaA":
            return (form + kind) % take(8, "d")
        if kind == "s":
            return (form + "s") % read_string(space, take(8, "Q"))
        if kind == "p":
            return hex(take(8, "Q"))
        if kind == "c":
            return (form + "c") % (take(4, "i") & 0xFF)
        wide = length in ("l", "ll", "z", "j", "t")
        code = ("q" if wide else "i") if kind in "di" else ("Q" if wide else "I")
        return (form + ("d" if kind in "diu" else kind)) % take(8 if wide else 4, code)

    return _SPEC.sub(replace, template)
