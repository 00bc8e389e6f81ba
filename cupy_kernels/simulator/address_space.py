"""The fake 64-bit address space: windows, buffers, and how kernel arguments become addresses.

Every buffer sits in the middle of its own 8 GiB slot, so no out-of-bounds access can land in
another array and a negative offset is still blamed on the right one.
"""

from __future__ import annotations

import ctypes

import numpy as np

SLOT = 1 << 33
GLOBAL_BASE = 0x7F00_0000_0000
SHARED_BASE = 0x7E00_0000_0000
LOCAL_BASE = 0x7C00_0000_0000
WINDOW = 1 << 40
MODULE_SLOT = 4096  # module variables start here; kernel arguments below
PARAM_SLOT = 65536


def slot_base(slot: int) -> int:
    """Address of the first byte of the buffer in ``slot``."""
    return GLOBAL_BASE + slot * SLOT + (SLOT >> 1)


def window_of(address: int) -> str:
    """The state space of a generic address: global, shared or local."""
    if SHARED_BASE <= address < SHARED_BASE + WINDOW:
        return "shared"
    if LOCAL_BASE <= address < LOCAL_BASE + WINDOW:
        return "local"
    return "global"


class Buffer:
    """One array of global (or constant, or parameter) memory, as bytes.

    ``item`` is the host array's element size, for messages; 0 if unknown.
    """

    def __init__(self, name: str, data: np.ndarray, slot: int, item: int = 0, phase: int = 0):
        self.name, self.bytes, self.size = name, data, data.nbytes
        self.base = slot_base(slot) + phase
        self.slot, self.item = slot, item
        self.read_only = False
        self._views: dict = {}

    def view(self, dtype: np.dtype, phase: int = 0) -> np.ndarray:
        """The buffer as elements of ``dtype`` starting at byte ``phase``."""
        found = self._views.get((dtype, phase))
        if found is None:
            count = (self.size - phase) // dtype.itemsize
            found = self.bytes[phase : phase + count * dtype.itemsize].view(dtype)
            self._views[dtype, phase] = found
        return found

    def describe(self, offset: int) -> str:
        """``name+offset`` with the element index where the element size is known."""
        text = f"{self.name}{offset:+d}"
        size = f"{self.size:,} bytes"
        if self.item:
            size += f", element {offset // self.item} of {self.size // self.item}"
        return f"{text} ({size})"


class AddressSpace:
    """The buffers that one launch can see, by slot."""

    def __init__(self, buffers: list[Buffer]):
        self.buffers = {b.slot: b for b in buffers}

    def find(self, address: int) -> Buffer | None:
        """The buffer to whose slot ``address`` belongs, or None."""
        return self.buffers.get((address - GLOBAL_BASE) // SLOT)


def buffers_for_arrays(arrays: dict[str, np.ndarray]) -> tuple[list[Buffer], dict[str, int]]:
    """Give every argument array a buffer; overlapping arrays share one.

    Returns the buffers and the address of each array's first element. An array that is a view
    keeps its offset modulo 256 inside its base, so misaligned views stay misaligned.
    """
    spans = sorted((a.__array_interface__["data"][0], a.nbytes, name) for name, a in arrays.items())
    groups: list[list] = []  # [start, end, names]
    for start, size, name in spans:
        if groups and start < groups[-1][1] and size:
            groups[-1][1] = max(groups[-1][1], start + size)
            groups[-1][2].append(name)
        else:
            groups.append([start, start + size, [name]])
    order = {name: n for n, name in enumerate(arrays)}
    buffers, addresses = [], {}
    for start, end, names in groups:
        names.sort(key=order.get)
        first = arrays[names[0]]
        if len(names) == 1:
            data = first.reshape(-1).view(np.uint8)
        else:
            data = np.frombuffer((ctypes.c_char * (end - start)).from_address(start), np.uint8)
        label = names[0] if len(names) == 1 else "=".join(names)
        buffer = Buffer(label, data, order[names[0]], first.dtype.itemsize, _phase(first, start))
        buffer.read_only = not all(arrays[n].flags.writeable for n in names)
        buffers.append(buffer)
        for name in names:
            at = arrays[name].__array_interface__["data"][0]
            addresses[name] = buffer.base + at - start
    return buffers, addresses


def _phase(array: np.ndarray, start: int) -> int:
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    return (start - root.__array_interface__["data"][0]) % 256
