"""What a launch did: counts per PTX instruction, folded to source lines and to arrays.

What each count is on an H200, by ncu's names, is in ``benchmarks/hardware_counters.py``; where the
two differ, and why, in ``benchmarks/README.md``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from .ptx import Instruction


@dataclass
class Traffic:
    """Requests, bytes (active lanes × width) and 32-byte sectors of one kind of access."""

    requests: int = 0
    bytes: int = 0
    sectors: int = 0

    def __iadd__(self, other: Traffic) -> Traffic:
        self.requests += other.requests
        self.bytes += other.bytes
        self.sectors += other.sectors
        return self


@dataclass
class ArrayTraffic:
    """Global traffic of one array. Atomics and cp.async are kept apart from loads and stores."""

    load_bytes: int = 0
    store_bytes: int = 0
    load_sectors: int = 0
    store_sectors: int = 0
    load_requests: int = 0
    store_requests: int = 0
    cp_async_bytes: int = 0
    cp_async_sectors: int = 0
    cp_async_requests: int = 0
    atomic_bytes: int = 0
    atomic_sectors: int = 0
    atomic_requests: int = 0
    unique_bytes_read: int = 0
    unique_bytes_written: int = 0
    size_bytes: int = 0

    def add(self, kind: str, traffic: Traffic) -> None:
        """Add ``traffic`` under ``kind``: load, store, cp_async or atomic."""
        for name in ("requests", "bytes", "sectors"):
            key = f"{kind}_{name}"
            setattr(self, key, getattr(self, key) + getattr(traffic, name))


_SUMMED = (
    "executed",
    "load_requests",
    "load_bytes",
    "load_sectors",
    "store_requests",
    "store_bytes",
    "store_sectors",
    "cp_async_requests",
    "cp_async_bytes",
    "cp_async_sectors",
    "cp_async_moves",
    "atomic_requests",
    "atomic_bytes",
    "atomic_sectors",
    "local_requests",
    "local_bytes",
    "local_sectors",
    "shared_requests",
    "shared_bytes",
    "shared_wavefronts",
    "shared_ideal_wavefronts",
    "mma_flops",
    "mma",
    "ex2_lanes",
    "fma_lanes",
)


@dataclass(repr=False)
class Counts:
    """Additive counts of an instruction, a source line or a launch. ``executed`` = warps.

    ``cp_async_moves`` is what an H200 counts as sectors of cp.async. It equals ``cp_async_sectors``
    for ``.ca``; ``.cg`` moves once for each pair of a source sector and the sector of shared memory
    it lands in, so a padding that shifts a row by 16 bytes costs twice.
    """

    executed: int = 0
    load_requests: int = 0
    load_bytes: int = 0
    load_sectors: int = 0
    store_requests: int = 0
    store_bytes: int = 0
    store_sectors: int = 0
    cp_async_requests: int = 0
    cp_async_bytes: int = 0
    cp_async_sectors: int = 0
    cp_async_moves: int = 0
    atomic_requests: int = 0
    atomic_bytes: int = 0
    atomic_sectors: int = 0
    local_requests: int = 0
    local_bytes: int = 0
    local_sectors: int = 0
    shared_requests: int = 0
    shared_bytes: int = 0
    shared_wavefronts: int = 0
    shared_ideal_wavefronts: int = 0
    mma_flops: int = 0
    mma: int = 0
    ex2_lanes: int = 0
    fma_lanes: int = 0

    def __iadd__(self, other: Counts) -> Counts:
        for name in _SUMMED:
            value = getattr(other, name)
            if value:
                setattr(self, name, getattr(self, name) + value)
        return self

    @property
    def shared_conflicts(self) -> int:
        """Wavefronts beyond the conflict-free number."""
        return self.shared_wavefronts - self.shared_ideal_wavefronts

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={n:,}" for name, n in self.as_dict().items() if n)
        return f"{type(self).__name__}({shown})"

    def as_dict(self) -> dict[str, int]:
        """The counts as plain numbers, for JSON."""
        return {f.name: getattr(self, f.name) for f in fields(Counts)}


@dataclass(repr=False)
class InstructionCounts(Counts):
    """Counts of one PTX instruction."""

    instruction: Instruction | None = None


@dataclass(repr=False)
class LineCounts(Counts):
    """Counts of one line of the kernel body; inlined wrappers count at their call site."""

    line: int = 0
    text: str = ""
    filename: str = ""


@dataclass(repr=False)
class LaunchCounts:
    """Everything measured in one launch.

    ``totals`` sums all instructions; ``mix`` maps root opcodes to executed warp instructions;
    ``masked_steps``/``steps`` is the share of scheduler steps that ran for part of the lanes.
    """

    kernel: str
    per_instruction: list[InstructionCounts] = field(default_factory=list)
    arrays: dict[str, ArrayTraffic] = field(default_factory=dict)
    source: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    printed: str = ""
    steps: int = 0
    masked_steps: int = 0

    def __repr__(self) -> str:
        return f"LaunchCounts({self.kernel}: {self.totals!r}, warnings={len(self.warnings)})"

    @property
    def totals(self) -> Counts:
        """Sum over all instructions."""
        total = Counts()
        for counts in self.per_instruction:
            total += counts
        return total

    @property
    def mix(self) -> dict[str, int]:
        """Executed warp instructions by root opcode, most frequent first."""
        mix: Counter = Counter()
        for counts in self.per_instruction:
            if counts.executed:
                mix[counts.instruction.root] += counts.executed
        return dict(mix.most_common())

    def per_array(self) -> dict[str, ArrayTraffic]:
        """Global traffic by array name."""
        return self.arrays

    def per_line(self) -> list[LineCounts]:
        """Counts folded to the lines of the kernel body, in line order."""
        lines: dict[tuple, LineCounts] = {}
        for counts in self.per_instruction:
            place = counts.instruction.place
            key = (place.filename, place.body_line)
            if key not in lines:
                number = place.body_line
                known = 0 < number <= len(self.source)
                text = self.source[number - 1] if known else place.text
                lines[key] = LineCounts(line=number, text=text, filename=place.filename)
            lines[key] += counts
        return [lines[key] for key in sorted(lines)]
