"""One launch: arguments to addresses, waves of blocks, checks at the end, counts."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from . import formats, warp_ops
from .address_space import PARAM_SLOT, AddressSpace, Buffer, buffers_for_arrays
from .addresses import AddressBook, Geometry, Mask
from .async_copy import AsyncCopies
from .counters import ArrayTraffic, InstructionCounts, LaunchCounts
from .device_printf import format_message, read_string
from .faults import Fault, LaunchError, Party
from .global_memory import GlobalSite
from .global_races import BufferHistory, Fences, collect
from .instructions import bits, compare, conversion, floating, integer, moves
from .kernel import Kernel
from .local_memory import LocalMemory
from .scheduler import Budget, Scheduler
from .shared_memory import Layout, SharedLoadGroup, SharedMemory, SharedSite

WAVE_LANES = 8192
COOPERATIVE_LANES = 1 << 16
DEFAULT_SHARED = 48 * 1024
LARGEST_SHARED = 227 * 1024


@dataclass(frozen=True)
class Limits:
    """What a launch may use before it is stopped: scheduler steps and seconds."""

    steps: int = 20_000_000
    seconds: float = 120.0


def launch(
    kernel: Kernel,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence,
    *,
    shared_bytes: int = 0,
    max_dynamic_shared_bytes: int | None = None,
    names: Sequence[str] | None = None,
    limits: Limits = Limits(),
    check: bool = True,
    full_classes: bool = False,
) -> LaunchCounts:
    """Run ``kernel`` and return what it did.

    ``grid``, ``block``: one to three positive ints. ``args``: C-contiguous NumPy arrays (changed in
    place), NumPy or Python scalars, ``bytes`` for structs by value, ``None`` for a null pointer.
    ``shared_bytes`` is the dynamic shared memory. ``names`` renames the parameters in reports.
    ``check=False`` leaves out the race and initialisation checks; ``full_classes=True`` runs every
    instruction masked and at full width (slow; for comparison).

    Raises ``LaunchError`` for arguments that do not fit, ``Fault`` for a bug in the kernel or an
    impossible launch configuration.
    """
    run = Launch(kernel, grid, block, limits, check, full_classes)
    run.bind(args, names)
    run.configure_shared(shared_bytes, max_dynamic_shared_bytes)
    run.execute()
    return run.finish()


class Wave:
    """The blocks that run together, with their memories and registers."""

    def __init__(self, launch: Launch, first_block: int, geometry: Geometry, book: AddressBook):
        self.launch, self.first_block, self.geometry, self.book = (
            launch,
            first_block,
            geometry,
            book,
        )
        kernel = launch.kernel
        self.shared = SharedMemory(
            launch.layout, geometry, kernel.translation.granule, launch.check
        )
        self.local = LocalMemory(kernel.translation.frame, geometry)
        self.copies = AsyncCopies(launch, self)
        self.warp = warp_ops.WarpOps(self)
        code = kernel.translation.code
        self.registers: list = [None] * len(code.slots)
        for name, slot in code.slots.items():
            in_family = name in code.family
            zero = np.zeros((1, 1), code.canonical[name])
            self.registers[slot] = (book.zero, 0) if in_family else zero


class Launch:
    """State of one launch. Memory sites and generated code call back into it."""

    def __init__(self, kernel: Kernel, grid, block, limits: Limits, check: bool, masked: bool):
        self.kernel, self.check, self.always_masked = kernel, check, masked
        self.translation = kernel.translation
        self.grid, self.block = _dims("grid", grid), _dims("block", block)
        self.threads = int(np.prod(self.block))
        self.limits = limits
        self.counts = [InstructionCounts(instruction=i) for i in kernel.translation.instructions]
        self.warnings: list[str] = []
        self._warned: set = set()
        self.printed: list[str] = []
        self.fragments: dict = {}
        self.arrays: dict[str, ArrayTraffic] = {}
        self.history: dict[Buffer, BufferHistory] = {}
        self.fences = Fences(kernel.translation.has_flags)
        self.fences.flush = self.collect_logs
        self.wave: Wave | None = None
        self.budget = Budget(limits.steps, limits.seconds)
        self.masked_steps = 0
        self._check_block()

    # ---- set-up -------------------------------------------------------------------------------

    def _check_block(self) -> None:
        x, y, z = self.block
        kernel = self.kernel
        if self.threads > 1024 or x > 1024 or y > 1024 or z > 64:
            raise self.fault(
                "launch",
                f"{self.threads} threads a block ({x} × {y} × {z}): at most 1024, and 1024 × 1024 "
                "× 64 along x, y, z",
                None,
                "use smaller blocks and more of them",
            )
        if kernel.max_threads and self.threads > kernel.max_threads:
            raise self.fault(
                "launch",
                f"{self.threads} threads a block, but __launch_bounds__ allows "
                f"{kernel.max_threads}",
                None,
                "launch with the block size that the kernel was compiled for",
            )
        if self.grid[0] >= 2**31 or self.grid[1] > 65535 or self.grid[2] > 65535:
            raise self.fault("launch", f"grid {self.grid} is too large", None)

    def bind(self, args: Sequence, names: Sequence[str] | None) -> None:
        """Give every array an address and pack the parameter bytes."""
        params = self.kernel.params
        if len(args) != len(params):
            expected = ", ".join(p.name for p in params)
            raise LaunchError(
                f"kernel {self.kernel.name} takes {len(params)} arguments ({expected}), "
                f"got {len(args)}"
            )
        labels = list(names) if names is not None else [p.name for p in params]
        arrays = {}
        for label, p, arg in zip(labels, params, args, strict=True):
            if isinstance(arg, np.ndarray) and arg.ndim + arg.size > 0 and not _by_value(arg, p):
                if not arg.flags.c_contiguous:
                    raise LaunchError(f"argument {label} is not C-contiguous: pass a copy")
                key = label if label not in arrays else f"{label}_{len(arrays)}"
                arrays[key] = arg
        buffers, addresses = buffers_for_arrays(arrays)
        keys = iter(arrays)
        size = params[-1].offset + params[-1].size if params else 0
        data = np.zeros(max(size, 8), np.uint8)
        for label, p, arg in zip(labels, params, args, strict=True):
            if isinstance(arg, np.ndarray) and arg.ndim + arg.size > 0 and not _by_value(arg, p):
                arg = np.uint64(addresses[next(keys)])
            raw = _parameter_bytes(label, p, arg)
            data[p.offset : p.offset + p.size] = np.frombuffer(raw, np.uint8)
        self.parameters = data
        parameter_buffer = Buffer("kernel parameters", data, PARAM_SLOT)
        parameter_buffer.read_only = True
        module = list(self.kernel.program.buffers.values())
        self.space = AddressSpace([*buffers, *module, parameter_buffer])
        for b in [*buffers, *(b for b in module if not b.read_only)]:
            self.arrays[b.name] = ArrayTraffic(size_bytes=b.size)

    def configure_shared(self, dynamic: int, maximum: int | None) -> None:
        """Check the shared-memory request like the driver does."""
        static = self.kernel.static_shared_bytes
        allowed = max(DEFAULT_SHARED - static, 0) if maximum is None else maximum
        if static > DEFAULT_SHARED:
            raise self.fault(
                "launch",
                f"{static:,} bytes of static shared memory: at most {DEFAULT_SHARED:,}",
                None,
                "use dynamic shared memory (extern __shared__) for more than 48 KB",
            )
        if dynamic > max(allowed, DEFAULT_SHARED - static) or static + dynamic > LARGEST_SHARED:
            raise self.fault(
                "launch",
                f"{static:,} static + {dynamic:,} dynamic bytes of shared memory: without opt-in "
                f"the limit is {DEFAULT_SHARED:,}, with it {LARGEST_SHARED:,}",
                None,
                f"set kernel.max_dynamic_shared_size_bytes = {dynamic} before the launch",
            )
        self.layout = Layout(self.translation.shared_variables, dynamic)

    # ---- execution ----------------------------------------------------------------------------

    def execute(self) -> None:
        """Run all waves."""
        code = self.code = self.translation.code
        count = self.translation.cfg.exit
        self.functions = {kind: [None] * count for kind in "fmc"}
        self.namespace = dict(_MODULES, launch=self)
        self.sites: dict[str, object] = {}
        self.global_sites: list[GlobalSite] = []
        self.shared_sites: list[SharedSite] = []
        for name in code.compiled:
            self._define(name)
        total = int(np.prod(self.grid))
        lanes = COOPERATIVE_LANES if self.translation.cfg.spin_blocks else WAVE_LANES
        per_wave = max(1, min(total, lanes // (-(-self.threads // 32) * 32)))
        books: dict[int, AddressBook] = {}
        with np.errstate(all="ignore"):
            for first in range(0, total, per_wave):
                blocks = min(per_wave, total - first)
                if blocks not in books:
                    books[blocks] = AddressBook(Geometry(blocks, self.threads))
                self._run_wave(first, books[blocks])
        if self.check:
            self._check_races()

    def translate(self, kind: str, block: int):
        """Translate a block on first use: ``f`` fast, ``m`` masked, ``c`` collective's members."""
        self._define(f"{kind}_{block}")
        self._provide()
        return self.functions[kind][block]

    def _define(self, name: str) -> None:
        exec(self.code.function(name), self.namespace)
        self.functions[name[0]][int(name[2:])] = self.namespace[name]

    def _provide(self) -> None:
        """Give the generated code the constants, parameters and sites it has come to need."""
        code, namespace = self.code, self.namespace
        namespace |= code.namespace
        for name, (offset, dtype) in code.params.items():
            if name not in namespace:
                kind = np.dtype(dtype)
                raw = self.parameters[offset : offset + kind.itemsize].tobytes()
                namespace[name] = np.frombuffer(raw, kind).reshape(1, 1)
        for name, (register, dtype) in code.specials.items():
            if name not in namespace:
                namespace[name] = self._special(register, dtype)
        for name, make in code.sites.items():
            if name not in self.sites:
                namespace[name] = self.sites[name] = site = make(self)
                _sort_site(site, self.global_sites, self.shared_sites)
                site.begin_wave(self.wave)

    def _special(self, register: str, dtype: str) -> np.ndarray:
        if register in self.special_registers:
            value = self.special_registers[register]
        else:
            value = np.full((1, 1), self.budget.used)  # clocks: a step counter
        if self.always_masked:
            value = np.broadcast_to(value, self.wave.geometry.shape)
        kind = np.dtype(dtype)
        return value.astype("u4").view(kind) if dtype == "f4" else value.astype(kind)

    def _run_wave(self, first: int, book: AddressBook) -> None:
        namespace = self.namespace
        wave = self.wave = self.fences.wave = Wave(self, first, book.geometry, book)
        namespace["book"], namespace["zero"] = book, book.zero
        namespace["warp"], namespace["copies"] = wave.warp, wave.copies
        self.special_registers = warp_ops.special_registers(
            book.geometry, self.block, self.grid, first
        )
        self.special_registers["dynamic_smem_size"] = np.full((1, 1), self.layout.dynamic_bytes)
        self.special_registers["total_smem_size"] = np.full((1, 1), self.layout.end)
        for name in self.code.specials:
            namespace.pop(name, None)
        for site in self.sites.values():
            site.begin_wave(wave)
        self._provide()
        scheduler = Scheduler(self, wave, self.translation.endings)
        scheduler.run()
        wave.copies.at_exit()
        self._count_executions(scheduler)
        self.collect_logs()
        for site in self.shared_sites:
            site.fold_counts()

    def collect_logs(self) -> None:
        """Move the sites' access logs into the launch's history."""
        accesses = collect(self.global_sites, self.wave, self.fences.time)
        for buffer, found in accesses.items():
            if buffer not in self.history:
                self.history[buffer] = BufferHistory(buffer, self._granule())
            self.history[buffer].accesses += found

    def _granule(self) -> int:
        return min([4, *(site.width for site in self.global_sites)])

    def _count_executions(self, scheduler: Scheduler) -> None:
        cfg, geometry = self.translation.cfg, scheduler.geometry
        warps, lanes = list(scheduler.warps_run), list(scheduler.lanes_run)
        for head, times in enumerate(scheduler.fast_runs):
            if times:
                for b in range(head, cfg.fused_until[head] + 1):
                    warps[b] += times * geometry.all_warps
                    lanes[b] += times * geometry.blocks * geometry.threads
        for block in cfg.blocks:
            if warps[block.index]:
                for i in block.instructions:
                    self._count_instruction(i, warps[block.index], lanes[block.index])
        self.masked_steps += scheduler.masked_steps

    def _count_instruction(self, i, warps: int, lanes: int) -> None:
        counts = self.counts[i.index]
        counts.executed += warps
        if i.root == "ex2":
            counts.ex2_lanes += lanes * (2 if i.type.endswith("x2") else 1)
        elif i.root == "fma":
            counts.fma_lanes += lanes * (2 if i.type.endswith("x2") else 1)
        elif i.root == "mma":
            counts.mma += warps
            counts.mma_flops += warps * self.sites[f"s{i.index}"].flops

    def _check_races(self) -> None:
        for history in self.history.values():
            found = history.race(self.fences)
            if found is not None:
                raise self._global_race(history, *found)

    def _global_race(self, history, cell, first, first_block, second, second_block) -> Fault:
        buffer, granule = history.buffer, history.granule
        what = {"load": "reads", "store": "writes", "atomic": "updates", "cp_async": "copies"}
        one, two = first.site, second.site
        fault = self.fault(
            "race",
            f"two blocks touch {buffer.describe(cell * granule)} in one launch and nothing orders "
            f"them: one {what[one.kind]} it, the other {what[two.kind]} it",
            two.instruction,
            "blocks run in any order: use atomicAdd for sums over blocks, and a second kernel to "
            "read what another block wrote",
            array=buffer.name,
            byte_offset=cell * granule,
            element=cell * granule // buffer.item if buffer.item else None,
        )
        for access, number in ((first, first_block), (second, second_block)):
            where = self.grid_coordinates(number) if number >= 0 else None
            column = access.thread_at(number, cell, granule)
            thread = None if column is None else self.thread_coordinates(column)
            place = access.site.instruction.place
            fault.parties.append(Party(f"{what[access.site.kind]} it", where, thread, place))
        fault.block, fault.thread = fault.parties[1].block, fault.parties[1].thread
        return fault

    def finish(self) -> LaunchCounts:
        """Fold everything into the result."""
        for buffer, history in self.history.items():
            if buffer.name in self.arrays:
                array = self.arrays[buffer.name]
                array.unique_bytes_read = min(
                    history.touched_bytes(("load", "cp_async", "atomic")), buffer.size
                )
                array.unique_bytes_written = min(
                    history.touched_bytes(("store", "atomic")), buffer.size
                )
        return LaunchCounts(
            self.kernel.name,
            self.counts,
            self.arrays,
            self.kernel.source,
            self.warnings,
            "".join(self.printed),
            self.budget.used,
            self.masked_steps,
        )

    # ---- called from sites and generated code -------------------------------------------------

    def block_coordinates(self, row: int) -> tuple[int, int, int]:
        """Grid coordinates of a block of the present wave."""
        return self.grid_coordinates(self.wave.first_block + row)

    def grid_coordinates(self, number: int) -> tuple[int, int, int]:
        """Linear block number to (x, y, z)."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def thread_coordinates(self, column: int) -> tuple[int, int, int]:
        """Linear thread number to (x, y, z)."""
        x, y, _ = self.block
        return column % x, column // x % y, column // (x * y)

    def first_lane(self, bad: np.ndarray, mask: Mask | None) -> tuple[int, int, int]:
        """(row, column, number of others) of the first lane in ``bad`` that takes part."""
        shape = self.wave.geometry.shape
        lanes = np.broadcast_to(bad, shape)
        if mask is not None:
            lanes = lanes & mask.array
        if not lanes.any():
            return 0, 0, 0
        flat = int(np.argmax(lanes))
        return flat // shape[1], flat % shape[1], int(lanes.sum()) - 1

    def party(self, role: str, row: int, column: int, instruction: int | None) -> Party:
        """One side of a conflict inside a block."""
        place = None if instruction is None else self.counts[instruction].instruction.place
        return Party(role, self.block_coordinates(row), self.thread_coordinates(column), place)

    def fault(
        self, kind: str, message: str, instruction, cause: str = "", lane=None, **more
    ) -> Fault:
        """Build a fault; ``lane`` = (row, column, number of other lanes)."""
        fault = Fault(kind, message, self.kernel.name, cause, **more)
        if instruction is not None:
            fault.place, fault.ptx_line = instruction.place, instruction.ptx_line
            fault.instruction = instruction.text
        if lane is not None and self.wave is not None:
            fault.block = self.block_coordinates(lane[0])
            fault.thread = self.thread_coordinates(lane[1])
            fault.other_lanes = lane[2]
        return fault

    def warn(self, message: str, instruction) -> None:
        """Add a warning once per instruction."""
        if (message, instruction.index) not in self._warned:
            self._warned.add((message, instruction.index))
            self.warnings.append(f"{message} ({instruction.place})")

    def trap(self, mask: Mask | None, index: int) -> None:
        """``trap``: the launch fails."""
        lane = self.first_lane(np.ones((1, 1), bool), mask)
        i = self.counts[index].instruction
        raise self.fault("trap", "__trap() was executed", i, "", lane)

    def assertfail(self, mask: Mask | None, index: int, back, *slots: int) -> None:
        """A failed device assert."""
        row, column, _ = lane = self.first_lane(np.ones((1, 1), bool), mask)
        words = [self.frame_word(row, column, s) for s in slots[:4]]
        text, function = read_string(self.space, words[0]), read_string(self.space, words[3])
        i = self.counts[index].instruction
        message = f"assertion failed: {text} (line {words[2] & 0xFFFFFFFF}, in {function})"
        raise self.fault("assertion", message, i, "", lane)

    def vprintf(self, mask: Mask | None, index: int, back: int | None, form: int, values: int):
        """printf: lane by lane, in order."""
        shape = self.wave.geometry.shape
        lanes = np.ones(shape, bool) if mask is None else np.broadcast_to(mask.array, shape)
        for row, column in zip(*np.nonzero(lanes), strict=True):
            template = read_string(self.space, self.frame_word(row, column, form))
            address = self.frame_word(row, column, values)
            read = lambda at, size: self.local_bytes(row, column, at, size)  # noqa: E731, B023
            self.printed.append(format_message(template, address, read, self.space))

    def frame_word(self, row: int, column: int, offset: int) -> int:
        """Eight bytes of a lane's frame as an integer."""
        return struct.unpack("<Q", self.local_bytes(row, column, offset, 8))[0]

    def local_bytes(self, row: int, column: int, offset: int, size: int) -> bytes:
        """Bytes of a lane's local memory; ``offset`` may be a generic address."""
        local = self.wave.local
        base = (row * self.wave.geometry.threads + column) * local.size
        at = base + (offset & 0xFFFFFFFF)
        return local.bytes[at : at + size].tobytes()


def _sort_site(site, on_global: list[GlobalSite], on_shared: list[SharedSite]) -> None:
    """File a site's global and shared parts, also those inside generic, atomic and copy sites."""
    for part in [site, *getattr(site, "sites", {}).values()]:
        if isinstance(part, GlobalSite):
            on_global.append(part)
        elif isinstance(part, (SharedSite, SharedLoadGroup)):
            on_shared.append(part)


def _dims(what: str, value) -> tuple[int, int, int]:
    value = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if not 1 <= len(value) <= 3 or any(int(n) < 1 for n in value):
        raise LaunchError(f"{what} must be one to three positive integers, got {value}")
    return tuple((*(int(n) for n in value), 1, 1)[:3])


def _by_value(arg: np.ndarray, p) -> bool:
    """A 0-d array for a by-value parameter is a scalar, not a buffer."""
    return arg.ndim == 0 and p.type not in ("u64", "b64")


def _parameter_bytes(label: str, p, arg) -> bytes:
    if arg is None:
        return bytes(p.size)
    if isinstance(arg, (bytes, bytearray, memoryview)):
        raw = bytes(arg)
    elif isinstance(arg, (np.generic, np.ndarray)):
        raw = arg.tobytes()
    elif isinstance(arg, (bool, int)):
        if p.type in ("f32", "f64"):
            raw = struct.pack("<f" if p.size == 4 else "<d", arg)
        else:
            raw = (int(arg) & ((1 << 8 * p.size) - 1)).to_bytes(p.size, "little")
    elif isinstance(arg, float):
        raw = struct.pack("<d" if p.size == 8 else "<f", arg)
        if p.size == 2:
            raw = np.float16(arg).tobytes()
    else:
        raise LaunchError(
            f"argument {label} has type {type(arg).__name__}: pass NumPy arrays, NumPy or Python "
            "scalars, or bytes for a struct"
        )
    if len(raw) != p.size:
        raise LaunchError(
            f"argument {label} has {len(raw)} bytes, the kernel expects {p.size} (PTX type "
            f".{p.type}); wrap scalars in the NumPy type of the parameter, e.g. np.int32(n)"
        )
    return raw


_MODULES = {
    "np": np,
    "where": np.where,
    "fmt": formats,
    "bits": bits,
    "compare": compare,
    "conversion": conversion,
    "floating": floating,
    "integer": integer,
    "moves": moves,
    "ml_dtypes": ml_dtypes,
    **{f"{kind}{n}": np.dtype(f"{kind}{n}").type for kind in "ui" for n in (1, 2, 4, 8)},
    **{f"f{n}": np.dtype(f"f{n}").type for n in (2, 4, 8)},
}
