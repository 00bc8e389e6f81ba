"""What measured launches moved: per kernel, array and source line, as plain data.

A number that was not measured is None here and "not measured" wherever it is shown. The simulator
counts requests at the SM (it has no caches), so DRAM bytes and time come from a GPU only; a GPU's
counters know no arrays and no lines. On a GPU `load_sectors` and `load_requests` include cp.async.
"""

import json
from collections import Counter
from copy import copy
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING

from cupy_kernels import traffic_html, traffic_text

if TYPE_CHECKING:  # importing the simulator takes as long as all the rest: not before it is used
    from cupy_kernels.simulator import ArrayTraffic, LaunchCounts, LineCounts

# PTX opcodes by what a lesson asks of them; the rest is address arithmetic, loops and moves.
INSTRUCTION_GROUPS = {
    "matrix": ("mma", "wgmma"),
    "fma": ("fma", "mad"),
    "exponential": ("ex2",),
    "memory": ("ld", "st", "cp", "red", "atom", "ldmatrix", "stmatrix"),
    "synchronise": ("bar", "barrier", "mbarrier", "fence", "membar"),
    "exchange": ("shfl", "vote", "match", "redux"),
}


@dataclass
class Totals:
    """Counts of one or more launches; None is "not measured".

    Bytes are active lanes times width, sectors are 32-byte pieces touched by a warp's request;
    unique bytes count each byte of an array once, however often it moves.
    Conflicts are shared-memory wavefronts beyond the conflict-free number. DRAM bytes and time
    (nanoseconds) are for cold caches.
    """

    load_bytes: int | None = None
    store_bytes: int | None = None
    load_sectors: int | None = None
    store_sectors: int | None = None
    load_requests: int | None = None
    store_requests: int | None = None
    cp_async_bytes: int | None = None
    cp_async_sectors: int | None = None
    cp_async_requests: int | None = None
    atomic_bytes: int | None = None
    atomic_sectors: int | None = None
    atomic_requests: int | None = None
    tma_load_bytes: int | None = None
    tma_store_bytes: int | None = None
    unique_bytes_read: int | None = None
    unique_bytes_written: int | None = None
    local_bytes: int | None = None
    shared_requests: int | None = None
    shared_wavefronts: int | None = None
    shared_conflicts: int | None = None
    mma_flops: int | None = None
    ex2_lanes: int | None = None
    fma_lanes: int | None = None
    dram_read_bytes: int | None = None
    dram_write_bytes: int | None = None
    time_ns: int | None = None

    @classmethod
    def measured(cls, counts) -> "Totals":
        """Take the counts that `counts` (an object or a dict) has."""
        get = counts.get if isinstance(counts, dict) else lambda name: getattr(counts, name, None)
        return cls(**{f.name: get(f.name) for f in fields(cls)})

    def __add__(self, other: "Totals") -> "Totals":
        pairs = ((f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Totals(**{name: None if None in (a, b) else a + b for name, a, b in pairs})


@dataclass
class KernelTraffic:
    """All measured launches of one kernel in one place.

    `arrays` maps parameter names to their traffic (None on a GPU), `lines` lists the source lines
    that did something (None on a GPU), `mix` counts warp instructions by PTX opcode.
    """

    kernel: str
    filename: str
    source: str
    device: str
    launches: int = 0
    arrays: dict[str, "ArrayTraffic | None"] = field(default_factory=dict)
    lines: "list[LineCounts] | None" = None
    mix: dict[str, int] | None = None
    totals: Totals | None = None
    warnings: list[str] = field(default_factory=list)

    def add_simulated(self, arrays: list[str], counts: "LaunchCounts") -> None:
        """Add one launch that the simulator counted; `arrays` names its pointers in order."""
        counted = counts.per_array()
        order = [*(name for name in arrays if name in counted), *counted]
        for name in dict.fromkeys(order):  # what the source declares first, then its globals
            before = [self.arrays[name]] if name in self.arrays else []
            self.arrays[name] = sum_arrays([*before, counted[name]])
        self.lines = _merge_lines([*(self.lines or []), *counts.per_line()])
        self.mix = dict(Counter(self.mix or {}) + Counter(counts.mix))
        totals = Totals.measured(counts.totals)
        totals.unique_bytes_read = sum(a.unique_bytes_read for a in counted.values())
        totals.unique_bytes_written = sum(a.unique_bytes_written for a in counted.values())
        self._add_totals(totals)
        self.warnings += [text for text in counts.warnings if text not in self.warnings]

    def add_gpu(self, arrays: list[str], counters: dict[str, int | None]) -> None:
        """Add one launch on a GPU: its counters, or {} where they were refused."""
        self.arrays.update(dict.fromkeys(arrays))
        self._add_totals(Totals.measured(counters))

    @property
    def instruction_mix(self) -> dict[str, int] | None:
        """Warp instructions by group: matrix, fma, exponential, memory, ..., other."""
        if self.mix is None:
            return None
        groups = {root: group for group, roots in INSTRUCTION_GROUPS.items() for root in roots}
        total = Counter(dict.fromkeys((*INSTRUCTION_GROUPS, "other"), 0))
        for root, executed in self.mix.items():
            total[groups.get(root, "other")] += executed
        return dict(total)

    def to_dict(self) -> dict:
        """Plain data for JSON, the source left out."""
        data = asdict(self)
        del data["source"]
        data["instruction_mix"] = self.instruction_mix
        return data

    def _add_totals(self, launch):
        self.totals = launch if self.totals is None else self.totals + launch
        self.launches += 1


@dataclass
class Traffic:
    """What `measure()` saw, kernels in the order of their first launch.

    `not_measured` says why counts are missing, "" if none are.
    """

    kernels: list[KernelTraffic] = field(default_factory=list)
    not_measured: str = ""

    def kernel(self, name: str, filename: str, source: str, device: str) -> KernelTraffic:
        """The entry of one kernel in one place, made at its first launch."""
        for known in self.kernels:
            if (known.kernel, known.source, known.device) == (name, source, device):
                return known
        self.kernels.append(KernelTraffic(name, filename, source, device))
        return self.kernels[-1]

    def per_array(self) -> dict[str, "ArrayTraffic | None"]:
        """Traffic by parameter name, summed over the kernels that use the name."""
        names = dict.fromkeys(name for kernel in self.kernels for name in kernel.arrays)
        uses = {name: [k.arrays[name] for k in self.kernels if name in k.arrays] for name in names}
        return {name: None if None in found else sum_arrays(found) for name, found in uses.items()}

    @property
    def totals(self) -> Totals:
        """Sum over all kernels; a count that one of them lacks is None."""
        kernels = [kernel.totals for kernel in self.kernels if kernel.totals is not None]
        if not kernels:
            return Totals()
        total = kernels[0]
        for other in kernels[1:]:
            total = total + other
        return total

    def to_dict(self) -> dict:
        """Plain data for JSON; null is "not measured"."""
        return {
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "per_array": {n: a and asdict(a) for n, a in self.per_array().items()},
            "totals": asdict(self.totals),
            "not_measured": self.not_measured,
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=1)

    def __repr__(self):
        return traffic_text.table(self)

    def _repr_html_(self):
        return traffic_html.page(self)


def sum_arrays(arrays: list["ArrayTraffic"]) -> "ArrayTraffic":
    """Add up the traffic of one array over launches; its size is the largest seen."""
    total = copy(arrays[0])
    for array in arrays[1:]:
        for name in (f.name for f in fields(total) if f.name != "size_bytes"):
            setattr(total, name, getattr(total, name) + getattr(array, name))
        total.size_bytes = max(total.size_bytes, array.size_bytes)
    return total


def _merge_lines(lines):
    merged = {}
    for line in lines:
        key = (line.filename, line.line)
        if key in merged:
            merged[key] += line
        else:
            merged[key] = copy(line)
    return [merged[key] for key in sorted(merged)]
