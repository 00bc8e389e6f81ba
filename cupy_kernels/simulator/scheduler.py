"""Runs one wave of blocks: uniform while all lanes agree, else lowest program counter first.

A program counter is a block index of the control-flow graph. While every lane of the wave is at
one block the fast functions run and nothing is masked. After a divergent branch each step picks
the lanes at the lowest block; since compilers lay code out in topological order, lanes meet again
at the join. Lanes may also wait: at a block barrier, or *held* at a warp-collective instruction
until the other lanes that its member mask names arrive.

Agents that complete work on their own (asynchronous copies with barriers, ...) belong into
``_nothing_runs``: they act only when no lane can.
"""

from __future__ import annotations

import time

import numpy as np

from .cfg import Cfg, is_block_barrier
from .faults import Fault, Party
from .warp_ops import LANES

FALL, JUMP, BRANCH, EXIT, BARRIER, INDEX = range(6)
_PATIENCE = 64


class Program:
    """How each block ends, decided once per kernel."""

    def __init__(self, cfg: Cfg):
        self.cfg = cfg
        self.kinds: list[int] = []
        self.targets: list = []
        for block in cfg.blocks:
            kind, target = self._ending(block)
            self.kinds.append(kind)
            self.targets.append(target)
        # A jump to a block that only returns is an exit: such lanes owe nobody anything more.
        self.lands = list(range(cfg.exit + 1))
        for block in cfg.blocks:
            i = block.terminator
            alone = i is not None and len(block.instructions) == 1
            if alone and i.root in ("ret", "exit") and not i.guard:
                self.lands[block.index] = cfg.exit

    def _ending(self, block):
        i = block.terminator
        if i is None:
            return FALL, block.index + 1
        if is_block_barrier(i):
            return BARRIER, block.index + 1
        if i.root == "brx":
            return INDEX, np.array(block.successors)
        if i.root == "bra":
            return (BRANCH if i.guard else JUMP), block.successors[0]
        return (BRANCH if i.guard else EXIT), self.cfg.exit


class Budget:
    """Steps and seconds that a launch may use."""

    def __init__(self, steps: int, seconds: float):
        self.steps, self.seconds = steps, seconds
        self.used = 0
        self.deadline = time.perf_counter() + seconds

    def spend(self) -> str | None:
        """Count one step; return the kind of limit that is exceeded, if any."""
        self.used += 1
        if self.used > self.steps:
            return "step limit"
        if self.used & 127 == 0 and time.perf_counter() > self.deadline:
            return "time limit"
        return None


class Scheduler:
    """Executes the generated functions of one wave."""

    def __init__(self, launch, wave, program: Program):
        self.launch, self.wave, self.program = launch, wave, program
        self.cfg, self.exit = program.cfg, program.cfg.exit
        self.geometry = wave.geometry
        count = self.exit
        self.fast, self.masked = launch.functions["f"], launch.functions["m"]
        self.fast_runs = [0] * count  # by the head of the fused chain
        self.warps_run = [0] * count  # masked steps: active warps and lanes
        self.lanes_run = [0] * count
        self.masked_steps = 0
        self.barrier_request: tuple | None = None  # a barrier that needs the general rules

    def run(self) -> None:
        """Run the wave until every lane has exited."""
        geometry = self.geometry
        state: int | np.ndarray = 0  # one block for all lanes, or a block per lane
        if geometry.real_threads != geometry.threads or self.launch.always_masked:
            threads = np.arange(geometry.threads)[None]
            state = np.where(threads < geometry.real_threads, 0, self.exit)
        while not isinstance(state, int) or state != self.exit:
            state = self._uniform(state) if isinstance(state, int) else self._divergent(state)

    def _step(self, block: int) -> None:
        exceeded = self.launch.budget.spend()
        if exceeded:
            raise self._limit(exceeded, block)

    # ---- all lanes together -------------------------------------------------------------------

    def _uniform(self, pc: int) -> int | np.ndarray:
        """Run until the lanes disagree (a block per lane is returned) or all have exited."""
        registers, kinds, targets = self.wave.registers, self.program.kinds, self.program.targets
        until, fast, runs = self.cfg.fused_until, self.fast, self.fast_runs
        spend = self.launch.budget.spend
        while pc != self.exit:
            if exceeded := spend():
                raise self._limit(exceeded, pc)
            result = (fast[pc] or self.launch.translate("f", pc))(registers)
            runs[pc] += 1
            last = until[pc]
            kind = kinds[last]
            if kind == BRANCH:
                if result.size == 1:
                    pc = targets[last] if result.item() else last + 1
                    continue
                taken = np.count_nonzero(result)
                if taken and taken < result.size:
                    return self._land(np.where(result, targets[last], last + 1))
                pc = targets[last] if taken else last + 1
            elif kind == BARRIER:
                if not self._uniform_barrier(last, result):
                    self.barrier_request = (last, result)
                    return np.full((1, self.geometry.threads), last)
                pc = last + 1
            elif kind == INDEX:
                table = targets[last]
                pcs = self._land(table[np.minimum(result, len(table) - 1)])
                if pcs.size > 1 and pcs.min() != pcs.max():
                    return pcs
                pc = int(pcs.flat[0])
            else:
                pc = targets[last]
        return pc

    def _land(self, pcs: np.ndarray) -> np.ndarray:
        return np.array(self.program.lands)[pcs]

    def _uniform_barrier(self, block: int, request: tuple) -> bool:
        """A barrier that all lanes reach together; False if it needs the general rules."""
        name, count, predicate = request
        i = self.cfg.blocks[block].terminator
        if name.size > 1 or "arrive" in i.modifiers:
            return False
        if count is not None and (count.size > 1 or int(count.item()) != self.geometry.threads):
            return False
        self.wave.shared.ordering.block_barrier()
        if predicate is not None:
            everyone = np.ones((1, self.geometry.threads), bool)
            self._barrier_result(i, predicate, everyone, everyone)
        return True

    def _barrier_result(self, i, predicate, lanes, readers) -> None:
        """``bar.red``: combine the predicates of ``lanes`` per block, write it to ``readers``."""
        votes = np.broadcast_arrays(predicate, lanes)[0] & lanes
        if "popc" in i.modifiers:
            result = votes.sum(axis=1, keepdims=True).astype(np.uint32)
        elif "or" in i.modifiers:
            result = votes.any(axis=1, keepdims=True)
        else:
            result = (votes | ~lanes).all(axis=1, keepdims=True)
        code = self.launch.code
        slot = code.slots.get(i.operands[0].name)
        if slot is not None:
            result = result.view(code.canonical[i.operands[0].name])
            self.wave.registers[slot] = np.where(readers, result, self.wave.registers[slot])

    # ---- lanes apart --------------------------------------------------------------------------

    def _divergent(self, pc: np.ndarray) -> int:
        """Run lanes at different blocks until they are together again; return that block."""
        geometry = self.geometry
        self.pc = np.broadcast_to(pc, (pc.shape[0], geometry.threads))
        none = np.zeros((1, geometry.threads), bool)
        self.waiting = np.zeros((1, geometry.threads), np.int64)  # barrier id + 1
        self.barrier_block = np.zeros((1, geometry.threads), np.int64)
        self.held = none
        self.past = none  # ran past a barrier at which others of their block wait
        self.barrier_counts: dict[int, int | None] = {}
        self.arrived: dict[int, np.ndarray] = {}  # barrier -> per block, warps that arrived
        self.predicate = none
        self.spinning = self.relief = 0
        if self.barrier_request is not None:
            block, request = self.barrier_request
            self.barrier_request = None
            self._arrive(block, request, np.ones((1, geometry.threads), bool))
        while True:
            ready = np.where((self.waiting != 0) | self.held, self.exit, self.pc)
            block = self._choose(ready)
            if block == self.exit:
                if self._nothing_runs():
                    return self.exit
                continue
            lanes = ready == block
            if self.cfg.blocks[block].collective is not None:
                lanes = self._gather_members(block)
                if lanes is None:
                    continue
            self._step(block)
            self._run_masked(block, lanes)
            if self._together():
                return int(self.pc.flat[0])

    def _choose(self, ready: np.ndarray) -> int:
        """The lowest block with a ready lane; in spin loops, after a while, another one."""
        block = int(ready.min())
        if block in self.cfg.spin_blocks:
            others = ready[(ready != block) & (ready < self.exit)]
            if others.size:
                self.spinning += 1
                if self.spinning % (2 * _PATIENCE) >= _PATIENCE:
                    outside = [b for b in np.unique(others) if b not in self.cfg.spin_blocks]
                    return int(outside[0] if outside else others.max())
        return block

    def _run_masked(self, block: int, lanes: np.ndarray) -> None:
        if (self.waiting != 0).any():
            self._watch_divergent_barrier(block, lanes)
        mask = self.wave.book.mask(lanes)
        function = self.masked[block] or self.launch.translate("m", block)
        result = function(self.wave.registers, mask)
        self.masked_steps += 1
        self.warps_run[block] += mask.warps
        self.lanes_run[block] += mask.count
        kind, target = self.program.kinds[block], self.program.targets[block]
        if kind == BRANCH:
            following = self._land(np.where(result, target, block + 1))
        elif kind == INDEX:
            following = self._land(target[np.minimum(result, len(target) - 1)])
        else:
            following = self.program.lands[target] if kind == JUMP else target
        self.pc = np.where(lanes, following, self.pc)
        if kind == BARRIER:
            self._arrive(block, result, lanes)
        elif (self.waiting != 0).any() and (kind in (BRANCH, EXIT, JUMP, INDEX)):
            self._release()

    def _together(self) -> bool:
        if self.geometry.real_threads != self.geometry.threads or self.launch.always_masked:
            return False
        first = self.pc.flat[0]
        if first == self.exit or not (self.pc == first).all():
            return False
        return not (self.waiting != 0).any() and not self.held.any() and not self.arrived

    # ---- warp collectives ---------------------------------------------------------------------

    def _gather_members(self, block: int) -> np.ndarray | None:
        """Lanes at a collective whose named warp mates are all there; the others are held."""
        here = (self.pc == block) & (self.waiting == 0)
        named = self._named(block)
        by_warp = self.geometry.by_warp
        present, alive = by_warp(here), by_warp(self.pc != self.exit)
        if named is None:
            needed = present.any(axis=2, keepdims=True) & by_warp(self._real())
        else:
            bits = (by_warp(named)[..., None] >> LANES.astype(np.uint32)) & np.uint32(1)
            needed = (bits.astype(bool) & present[..., None]).any(axis=2)
        missing = needed & ~present & by_warp(self._real())
        if self.cfg.blocks[block].collective.root == "bar":
            # __syncwarp may name lanes that returned before; a value cannot come from those.
            missing = missing & (alive | self._left_while_held(by_warp))
        incomplete = missing.any(axis=2, keepdims=True) & present
        shape = (incomplete.shape[0], self.geometry.threads)
        hold = incomplete.reshape(shape)
        go = here & ~hold
        self.held = (self.held & ~here) | hold
        if hold.any():
            self._alive_at_hold = self.pc != self.exit
        if not go.any():
            return None
        return go

    def _named(self, block: int) -> np.ndarray | None:
        """Member masks of the collective at the head of a block; None = the whole warp."""
        function = self.launch.functions["c"][block] or self.launch.translate("c", block)
        return function(self.wave.registers)

    def _left_while_held(self, by_warp) -> np.ndarray:
        """Lanes that exited while warp mates were held: they should have taken part."""
        before = getattr(self, "_alive_at_hold", None)
        if before is None or not self.held.any():
            return np.zeros((1, 1, 1), bool)
        return by_warp(before & (self.pc == self.exit)) & by_warp(self.held).any(
            axis=2, keepdims=True
        )

    def _real(self) -> np.ndarray:
        return (np.arange(self.geometry.threads) < self.geometry.real_threads)[None]

    # ---- block barriers -----------------------------------------------------------------------

    def _arrive(self, block: int, request: tuple, lanes: np.ndarray) -> None:
        name, count, predicate = request
        i = self.cfg.blocks[block].terminator
        names = np.broadcast_to(name.astype(np.int64), (name.shape[0], self.geometry.threads))
        if "arrive" in i.modifiers:
            self._arrive_only(names, count, lanes)
        else:
            names, _ = np.broadcast_arrays(names, lanes)
            self.waiting = np.where(lanes, names + 1, self.waiting)
            self.barrier_block = np.where(lanes, block, self.barrier_block)
            for key in np.unique(names[np.broadcast_to(lanes, names.shape)]):
                self.barrier_counts[int(key) + 1] = self._count(count, i, lanes)
            if predicate is not None:
                self.predicate = np.where(lanes, predicate, self.predicate)
        self.pc = np.where(lanes, block + 1, self.pc)
        self._release()

    def _count(self, count, i, lanes) -> int | None:
        if count is None:
            return None
        number = int(np.asarray(count).flat[0])
        if number % 32 or number > self.geometry.threads:
            raise self.launch.fault(
                "barrier",
                f"named barrier with a count of {number}: it must be a multiple of 32 and at most "
                f"the {self.geometry.threads} threads of the block",
                i,
                "the count is the number of threads that take part, whole warps",
                self.launch.first_lane(lanes, None),
            )
        return number

    def _arrive_only(self, names, count, lanes) -> None:
        here = self.geometry.by_warp(lanes)
        names, here = np.broadcast_arrays(self.geometry.by_warp(names), here)
        for key in np.unique(names[here]):
            warps = (here & (names == key)).any(axis=2)
            warps = np.broadcast_to(warps, (self.geometry.blocks, self.geometry.warps))
            known = self.arrived.get(int(key) + 1)
            before = np.zeros(warps.shape, np.int64) if known is None else known
            self.arrived[int(key) + 1] = before + warps
            number = None if count is None else int(np.asarray(count).flat[0])
            self.barrier_counts[int(key) + 1] = number
            ordering = self.wave.shared.ordering
            for block in range(self.geometry.blocks):
                clock = ordering.own_clock(block)
                for warp in np.flatnonzero(warps[block]):
                    clock[warp, warp] = ordering.time + 1
            ordering.time += 1

    def _release(self) -> None:
        """Let go of every barrier whose condition is met, block by block."""
        for key in np.unique(self.waiting):
            if key == 0:
                continue
            here = self.waiting == key
            count = self.barrier_counts[int(key)]
            live = (self.pc != self.exit) & self._real()
            if count is None:
                full = (here | ~live).all(axis=1) & here.any(axis=1)
            else:
                full = self._number_arrived(int(key), here) >= count
                full &= here.any(axis=1)
            if full.any():
                self._let_go(int(key), here, full, count)

    def _number_arrived(self, key: int, here: np.ndarray) -> np.ndarray:
        by_warp = self.geometry.by_warp
        live = by_warp((self.pc != self.exit) & self._real())
        waiting = by_warp(here)
        whole = (waiting | ~live).all(axis=2) & waiting.any(axis=2)
        number = 32 * whole.sum(axis=1)
        if key in self.arrived:
            number = number + 32 * self.arrived[key].sum(axis=1)
        return number

    def _let_go(self, key: int, here, full, count) -> None:
        lanes = here & full[:, None]
        ordering = self.wave.shared.ordering
        self._check_left_behind(lanes, full, count)
        everyone = count is None or count >= self.geometry.threads
        if everyone and key not in self.arrived:
            rows = np.broadcast_to(full, self.geometry.blocks)
            ordering.block_barrier(None if rows.all() else rows)
        else:
            self._partial(key, lanes, full)
        block = int(np.broadcast_to(self.barrier_block, lanes.shape)[lanes][0])
        i = self.cfg.blocks[block].terminator
        if "red" in i.modifiers:
            self._barrier_result(i, self.predicate, lanes, lanes)
        self.waiting = np.where(lanes, 0, self.waiting)
        if key in self.arrived:
            rows = np.broadcast_to(full, self.geometry.blocks)
            self.arrived[key] = np.where(rows[:, None], 0, self.arrived[key])
            if not self.arrived[key].any():
                del self.arrived[key]

    def _partial(self, key: int, lanes, full) -> None:
        warps = self.geometry.by_warp(lanes).any(axis=2)
        warps = np.broadcast_to(warps, (self.geometry.blocks, self.geometry.warps))
        rows = np.broadcast_to(full, self.geometry.blocks)
        arrived = self.arrived.get(key)
        for block in np.flatnonzero(rows):
            coming = warps[block]
            if arrived is not None:
                coming = coming | (arrived[block] > 0)
            self.wave.shared.ordering.partial_barrier(int(block), coming, warps[block])

    # ---- diagnosis ----------------------------------------------------------------------------

    def _watch_divergent_barrier(self, block: int, lanes: np.ndarray) -> None:
        """Note lanes that run code after a barrier at which others of their block wait."""
        waiting = self.waiting != 0
        for barrier in np.unique(np.broadcast_to(self.barrier_block, waiting.shape)[waiting]):
            after = self.cfg.postdominators[barrier] >> block & 1 and block != barrier
            if after:
                rows = (waiting & (self.barrier_block == barrier)).any(axis=1, keepdims=True)
                self.past = self.past | (lanes & rows)

    def _check_left_behind(self, lanes, full, count) -> None:
        """A full barrier opens: did lanes run past it, or stop at another barrier?"""
        if count is not None:
            return
        at = np.broadcast_to(self.barrier_block, lanes.shape)
        blocks = np.unique(at[lanes])
        first = int(blocks[0])
        gone = (self.pc == self.exit) & self._real()
        elsewhere = lanes & (at != first)
        bad = self.past & (gone | elsewhere) & full[:, None]
        i = self.cfg.blocks[first].terminator
        if bad.any():
            row = int(np.argmax(bad.any(axis=1)))
            waiting = lanes & (at == first)
            rows = [a[row if a.shape[0] > 1 else 0] for a in (waiting, bad, gone, elsewhere)]
            counts = [int(r.sum()) for r in rows]
            column = int(np.argmax(rows[1]))
            raise self.launch.fault(
                "divergent barrier",
                f"__syncthreads reached by only part of the block: {counts[0]} threads wait, "
                f"{counts[1]} went past it, {counts[2]} have exited",
                i,
                "the barrier stands inside an if or a loop that not all threads of the block take",
                (row, int(np.argmax(rows[0])), counts[0] - 1),
                parties=[self.launch.party("went past", row, column, None)],
            )
        if len(blocks) > 1:
            lines = sorted({self.cfg.blocks[b].terminator.place.line for b in blocks})
            if len(lines) > 1:
                self.launch.warn(
                    f"threads of one block meet at different __syncthreads (lines {lines})", i
                )
        self.past = self.past & ~full[:, None]

    def _nothing_runs(self) -> bool:
        """No lane can run: finished, or a fault."""
        if (self.pc == self.exit).all() and not (self.waiting != 0).any():
            return True
        if self.held.any():
            raise self._divergent_collective()
        raise self._deadlock()

    def _divergent_collective(self) -> Fault:
        row, column = (int(n[0]) for n in np.nonzero(self.held))
        pcs = np.broadcast_to(self.pc, np.broadcast_shapes(self.pc.shape, self.held.shape))
        block = int(pcs[row, column])
        i = self.cfg.blocks[block].collective
        warp = column // 32
        present = self.held[row, 32 * warp : 32 * warp + 32] & (
            pcs[row, 32 * warp : 32 * warp + 32] == block
        )
        named = self._named(block)
        mask = (
            0xFFFFFFFF
            if named is None
            else int(
                np.broadcast_to(named, (named.shape[0], self.geometry.threads))[
                    row if named.shape[0] > 1 else 0, column
                ]
            )
        )
        absent = [n for n in range(32) if mask >> n & 1 and not present[n]]
        where = self._where_are(row, [32 * warp + n for n in absent[:1]])
        return self.launch.fault(
            "divergent warp operation",
            f"{i.root} names lanes {_ranges(absent)} (member mask {mask:#010x}), but they never "
            f"come: {where}",
            i,
            "the warp operation stands inside a branch that only some lanes of the warp take; "
            "move it out, or name only the lanes that are there",
            (row, column, int(present.sum()) - 1),
        )

    def _where_are(self, row: int, columns: list[int]) -> str:
        for column in columns:
            if column >= self.geometry.real_threads:
                return f"the block has only {self.geometry.real_threads} threads"
            pc = int(self.pc[row if self.pc.shape[0] > 1 else 0, column])
            if pc == self.exit:
                return "they have exited"
            i = (self.cfg.blocks[pc].instructions or [None])[0]
            wait = np.broadcast_to(self.waiting, (self.waiting.shape[0], self.geometry.threads))
            if wait[row if wait.shape[0] > 1 else 0, column]:
                at = self.cfg.blocks[pc - 1].terminator
                return f"they wait at the barrier in line {at.place.line}"
            return f"they are at line {i.place.line}" if i else "they are elsewhere"
        return "they are elsewhere"

    def _deadlock(self) -> Fault:
        parties, lines = [], []
        waiting = np.broadcast_to(
            self.waiting, np.broadcast_shapes(self.waiting.shape, self.barrier_block.shape)
        )
        at = np.broadcast_to(self.barrier_block, waiting.shape)
        first = None
        for key in np.unique(waiting[waiting != 0]):
            for block in np.unique(at[waiting == key]):
                lanes = (waiting == key) & (at == block)
                row = int(np.argmax(lanes.any(axis=1)))
                column = int(np.argmax(lanes[row]))
                i = self.cfg.blocks[block].terminator
                first = first or (i, row, column)
                count = self.barrier_counts[int(key)]
                here = int(self._number_arrived(int(key), waiting == key)[row])
                needs = f"{count} threads" if count else "all threads of the block"
                parties.append(
                    Party(
                        f"{int(lanes[row].sum())} threads wait at barrier {int(key) - 1} for "
                        f"{needs} ({here} have arrived)",
                        self.launch.block_coordinates(row),
                        self.launch.thread_coordinates(column),
                        i.place,
                    )
                )
                lines.append(i.place.line)
        i, row, column = first
        return self.launch.fault(
            "deadlock",
            f"no thread can run: threads wait at barriers in lines {sorted(set(lines))}",
            i,
            "a barrier is never reached by everyone it waits for: check its id, its thread count "
            "and the branches around it",
            (row, column, 0),
            parties=parties,
        )

    def _limit(self, kind: str, block: int) -> Fault:
        budget = self.launch.budget
        i = (self.cfg.blocks[block].instructions or [None])[0]
        much = f"{budget.steps:,} steps" if kind == "step limit" else f"{budget.seconds:g} seconds"
        return self.launch.fault(
            kind,
            f"the launch used up its {much} and is still running here",
            i,
            "an endless loop (a condition that never becomes false, a flag nobody sets), or a "
            "problem too large for the simulator: use smaller sizes",
            (0, 0, 0),
        )


def _ranges(numbers: list[int]) -> str:
    """[0, 1, 2, 5] -> '0-2, 5'."""
    parts, start = [], None
    for n, number in enumerate(numbers):
        start = number if start is None else start
        if n + 1 == len(numbers) or numbers[n + 1] != number + 1:
            parts.append(str(start) if start == number else f"{start}-{number}")
            start = None
    return ", ".join(parts)
