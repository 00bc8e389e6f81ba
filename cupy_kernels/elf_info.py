"""What a cubin says about its kernels: registers, stack, launch bounds, shared and constant memory.

A cubin is a 64-bit ELF file. The sections `.nv.info` (all kernels) and `.nv.info.NAME` (one) hold
attributes as (format, id, size, payload); the ids used here are below.
"""

import struct
from dataclasses import dataclass

REGISTER_COUNT, FRAME_SIZE = 0x2F, 0x11  # payload: symbol index, value
MAX_THREADS = 0x05  # payload: the three dimensions of __launch_bounds__
SIZED = 4  # the attribute format whose third field counts the bytes of its payload

SYMBOL_TABLE, NO_BITS = 2, 8  # ELF section types
SYMBOL_BYTES = 24

# From sm_90 on, the system owns the first kilobyte of a block's shared memory; the kernel's shared
# section includes it, and a section of this name says so.
RESERVED_SECTION, RESERVED_SHARED_BYTES = ".nv.shared.reserved.0", 1024


@dataclass(frozen=True)
class KernelInfo:
    """Static facts of a kernel: registers and stack bytes a thread, shared bytes a block.

    `max_threads` is the block size that `__launch_bounds__` names, None without it.
    """

    registers: int
    stack_bytes: int
    shared_bytes: int
    constant_bytes: int
    max_threads: int | None


def kernel_infos(image: bytes) -> dict[str, KernelInfo]:
    """Facts of every kernel in a cubin, by mangled name. Raises ValueError if it is no cubin."""
    sections, symbols = _read_elf(image)
    common = _attributes(sections[".nv.info"][1])
    registers = _by_symbol(common, REGISTER_COUNT, symbols)
    frames = _by_symbol(common, FRAME_SIZE, symbols)
    reserved = RESERVED_SHARED_BYTES if RESERVED_SECTION in sections else 0
    constant_bytes = sections.get(".nv.constant3", (0, b""))[0]
    kernels = [name[len(".nv.info.") :] for name in sections if name.startswith(".nv.info.")]
    return {
        name: KernelInfo(
            registers[name],
            frames.get(name, 0),
            max(0, sections.get(f".nv.shared.{name}", (0, b""))[0] - reserved),
            constant_bytes,
            _max_threads(sections[f".nv.info.{name}"][1]),
        )
        for name in kernels
        if name in registers
    }


def _read_elf(image):
    """Sections as {name: (size, bytes)} and the symbols' names in order."""
    if image[:5] != b"\x7fELF\x02":
        raise ValueError("not a cubin: it does not start as a 64-bit ELF file does")
    (table,) = struct.unpack_from("<Q", image, 40)
    entry_size, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [
        struct.unpack_from("<IIQQQQI", image, table + index * entry_size) for index in range(count)
    ]
    sections, symbols = {}, []
    for name, kind, _flags, _address, offset, size, link in headers:
        content = b"" if kind == NO_BITS else image[offset : offset + size]
        sections[_string(image, headers[names][4] + name)] = (size, content)
        if kind == SYMBOL_TABLE:
            starts = range(0, size, SYMBOL_BYTES)
            offsets = [struct.unpack_from("<I", content, start)[0] for start in starts]
            symbols = [_string(image, headers[link][4] + offset) for offset in offsets]
    return sections, symbols


def _attributes(data):
    """Sized attributes of an .nv.info section, as [(id, payload)]."""
    found, at = [], 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == SIZED:
            found.append((attribute, data[at : at + size]))
            at += size
    return found


def _by_symbol(attributes, wanted, symbols):
    pairs = [struct.unpack_from("<II", payload) for key, payload in attributes if key == wanted]
    return {symbols[symbol]: value for symbol, value in pairs}


def _max_threads(data):
    for key, payload in _attributes(data):
        if key == MAX_THREADS:
            x, y, z = struct.unpack_from("<III", payload)
            return x * y * z
    return None


def _string(image, at):
    return image[at : image.index(b"\0", at)].decode()
