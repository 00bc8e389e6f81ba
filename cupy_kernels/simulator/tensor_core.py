"""Tensor-core fragments: ldmatrix, stmatrix and mma.sync.

Lane l of a warp has g = l / 4 and c = l % 4. One fragment register holds, over the 32 lanes, an
8 × (4·e) sub-matrix (e = elements a register): row g, columns e·c … e·c + e − 1. Hence a register
of all lanes *is* that sub-matrix after a reshape, and every mma shape is a grid of them:

* A: register k is sub-matrix (row block k & 1, column block k >> 1);
* B: register k is the transpose of k-block k;
* C, D: rows g and g + 8, columns 2c and 2c + 1.
"""

from __future__ import annotations

import numpy as np

from . import formats as fmt
from .addresses import Mask, Pattern
from .ptx import Instruction
from .shared_memory import SharedSite

SHAPES = {
    ("m16n8k16", "f16"): 16,
    ("m16n8k16", "bf16"): 16,
    ("m16n8k8", "f16"): 8,
    ("m16n8k8", "bf16"): 8,
    ("m16n8k8", "tf32"): 8,
    ("m16n8k32", "e4m3"): 32,
    ("m16n8k32", "e5m2"): 32,
    ("m16n8k32", "s8"): 32,
    ("m16n8k32", "u8"): 32,
    ("m16n8k16", "s8"): 16,
    ("m16n8k16", "u8"): 16,
}
_CACHED = 256


def _elements(register: np.ndarray, kind: str) -> np.ndarray:
    """A register's elements as float32, shape (rows, threads, elements)."""
    if kind == "tf32":
        return fmt.tf32_truncate(register.view(np.float32))[..., None]
    if kind in ("f16", "bf16"):
        table = fmt.HALF_TO_FLOAT if kind == "f16" else fmt.BFLOAT_TO_FLOAT
        return table.take(fmt.split_pair(register))
    data = np.ascontiguousarray(register).view(np.uint8).reshape(*register.shape, 4)
    if kind in ("s8", "u8"):
        return data.view(np.int8 if kind == "s8" else np.uint8).astype(np.float32)
    return fmt.float_from_fp8(data, kind)


class Mma:
    """One ``mma.sync`` instruction."""

    def __init__(self, launch, i: Instruction, shape: str, a_kind: str, b_kind: str, to: str):
        self.launch, self.instruction = launch, i
        self.a_kind, self.b_kind, self.to = a_kind, b_kind, to
        self.cache = launch.fragments
        launch.counts[i.index].mma_flops = 0
        self.flops = 2 * 16 * 8 * SHAPES[shape, a_kind]

    def begin_wave(self, wave) -> None:
        """Bind to a new wave; fragments of the old one are forgotten."""
        self.geometry = wave.geometry
        self.cache.clear()

    def operand(self, registers: tuple, kind: str, is_b: bool) -> np.ndarray:
        """Sub-matrices put together, remembered by register identity.

        A: (warps, 16, k). B: (warps, k, 8), laid out like that in memory, since NumPy multiplies
        contiguous stacks ten times faster than transposed ones.
        """
        key = (kind, is_b, *map(id, registers))
        found = self.cache.get(key)
        if found is not None:
            return found[1]
        blocks = max(r.shape[0] for r in registers)
        parts = []
        for r in registers:
            if r.shape != (blocks, self.geometry.threads):
                r = np.broadcast_to(r, (blocks, self.geometry.threads))
            parts.append(_elements(r, kind).reshape(blocks * self.geometry.warps, 8, -1))
        width, warps = parts[0].shape[2], len(parts[0])
        if is_b:
            full = np.empty((warps, width * len(parts), 8), np.float32)
            for k, part in enumerate(parts):
                full[:, width * k : width * (k + 1)] = part.transpose(0, 2, 1)
        else:
            full = np.empty((warps, 16, width * len(parts) // 2), np.float32)
            for k, part in enumerate(parts):
                row, column = 8 * (k & 1), width * (k >> 1)
                full[:, row : row + 8, column : column + width] = part
        if len(self.cache) >= _CACHED:
            self.cache.clear()
        self.cache[key] = (registers, full)
        return full

    def __call__(self, a: tuple, b: tuple, c: tuple, mask: Mask | None) -> list[np.ndarray]:
        """Return D's registers for the fragments A, B and C."""
        product = self.operand(a, self.a_kind, False) @ self.operand(b, self.b_kind, True)
        blocks = len(product) // self.geometry.warps
        product = product.reshape(blocks, self.geometry.warps, 2, 8, 4, 2)
        shape = (blocks, self.geometry.threads)
        if self.to == "f16":
            halves = [product[:, :, h].reshape(*shape, 2) for h in (0, 1)]
            sums = [fmt.HALF_TO_FLOAT.take(fmt.split_pair(old)) for old in c]
            return [fmt.join_last(fmt.half_bits(h + s)) for h, s in zip(halves, sums, strict=True)]
        results = []
        for k, old in enumerate(c):
            part = product[:, :, k >> 1, :, :, k & 1].reshape(shape)
            results.append(old + (part.astype(np.int32) if self.to == "s32" else part))
        return results


class _MatrixSite(SharedSite):
    """Row addresses come from the first 8·count lanes, 16 bytes each."""

    def __init__(self, launch, instruction: Instruction, count: int, trans: bool):
        super().__init__(launch, instruction, 16, 1, "u4")
        self.matrices, self.trans = count, trans

    def begin_wave(self, wave) -> None:
        """Bind to a new wave."""
        super().begin_wave(wave)
        self.geometry = wave.geometry
        lanes = np.arange(self.geometry.threads)[None] % 32
        self.address_lanes = lanes < 8 * self.matrices

    def rows(self, p: Pattern, o: int, mask: Mask | None) -> tuple[Pattern, int]:
        """The pattern of the lanes that give row addresses."""
        if self.matrices == 4 and mask is None:
            return p, o
        lanes = self.address_lanes if mask is None else self.address_lanes & mask.array
        p, low = self.book.under(p, self.book.mask(lanes))
        return p, o + low

    def words(self, p: Pattern) -> np.ndarray:
        """Indices of 16-bit elements held by each lane: (matrices, blocks, threads, 2)."""
        key = ("matrix", self.matrices, self.trans)
        if key in p.memo:
            return p.memo[key]
        g = self.geometry
        rel = np.broadcast_to(p.rel, (g.blocks, g.threads)).reshape(g.blocks, g.warps, 32)
        base = (np.arange(g.blocks) * (self.memory.stride // 2)).reshape(-1, 1, 1, 1)
        lane = np.arange(32)
        pair = 2 * (lane % 4)[:, None] + np.arange(2)
        group = np.broadcast_to((lane // 4)[:, None], pair.shape)
        row, column = (pair, group) if self.trans else (group, pair)
        found = np.stack(
            [rel[:, :, 8 * j + row] // 2 + column + base for j in range(self.matrices)]
        )
        p.memo[key] = found.reshape(self.matrices, g.blocks, g.threads, 2)
        return p.memo[key]


class MatrixLoad(_MatrixSite):
    """``ldmatrix``: returns one register per matrix."""

    def __call__(self, p: Pattern, o: int, mask: Mask | None) -> np.ndarray:
        """Return the loaded elements of every lane; ``mask`` None means all lanes."""
        p, o = self.rows(p, o, mask)
        facts, start = self.reach(p, o)
        memory = self.memory
        if memory.check:
            clash = memory.shadow.read(facts.cells, start // memory.granule, self.instruction.index)
            if clash is not None:
                raise self.clash(clash)
        if self.trans:
            flat = memory.view(np.dtype("u2")).reshape(-1)[start // 2 :]
            return flat.take(self.words(p), mode="clip").view(np.uint32)[..., 0]
        key = ("matrix words", self.matrices)
        if key not in p.memo:
            p.memo[key] = self.words(p)[..., 0] // 2
        flat = memory.view(np.dtype("u4")).reshape(-1)[start // 4 :]
        return flat.take(p.memo[key], mode="clip")


class MatrixStore(_MatrixSite):
    """``stmatrix``."""

    reading = False

    def __call__(self, p: Pattern, o: int, mask: Mask | None, *values: np.ndarray) -> None:
        """Store one array per element for the lanes of ``mask`` (None: all)."""
        p, o = self.rows(p, o, mask)
        facts, start = self.reach(p, o)
        memory = self.memory
        if memory.check:
            clash = memory.shadow.write(
                facts.cells, start // memory.granule, self.instruction.index
            )
            if clash is not None:
                raise self.clash(clash)
        flat = memory.view(np.dtype("u2")).reshape(-1)[start // 2 :]
        words, shape = self.words(p), self.geometry.shape
        for where, value in zip(words, values, strict=True):
            halves = fmt.split_pair(np.broadcast_to(value, shape))
            if mask is None:
                flat[where] = halves
            else:
                lanes = np.broadcast_to(mask.array, shape)
                flat[where[lanes]] = halves[lanes]
