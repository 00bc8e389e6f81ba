"""Basic blocks, their successors and post-dominators.

Blocks are cut at two grains. The fine blocks also end *before* every warp-collective instruction
(shfl, vote, mma, ...), so that lanes which arrive early can be held back at it and run it again
with the rest of their warp. ``fused_until`` joins fine blocks again for lanes that all run
together: the fast path executes block *i* up to ``fused_until[i]`` in one go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .calls import FlatKernel
from .faults import PtxError
from .ptx import Instruction, Label

COLLECTIVES = {"shfl", "vote", "match", "redux", "mma", "ldmatrix", "stmatrix", "elect"}


def is_block_barrier(i: Instruction) -> bool:
    """True for bar/barrier in all forms but ``bar.warp.sync``, which concerns one warp only."""
    return i.root in ("bar", "barrier") and "warp" not in i.modifiers


def is_collective(i: Instruction) -> bool:
    """True where the lanes of a warp must execute the instruction together."""
    if i.root in COLLECTIVES:
        return True
    return i.root == "bar" and "warp" in i.modifiers


def ends_block(i: Instruction) -> bool:
    """True if control may leave the straight line after ``i``."""
    return i.root in ("bra", "brx", "ret", "exit", "trap") or is_block_barrier(i)


@dataclass
class Block:
    """A run of instructions that the lanes of a mask execute together."""

    index: int
    instructions: list[Instruction] = field(default_factory=list)
    has_label: bool = False
    successors: list[int] = field(default_factory=list)

    @property
    def terminator(self) -> Instruction | None:
        """The last instruction if it is a branch, a barrier or an exit."""
        last = self.instructions[-1] if self.instructions else None
        return last if last is not None and ends_block(last) else None

    @property
    def collective(self) -> Instruction | None:
        """The warp-collective instruction at its head, if there is one."""
        first = self.instructions[0] if self.instructions else None
        return first if first is not None and is_collective(first) else None


class Cfg:
    """The control-flow graph of a flat kernel. Block ``exit`` = one past the last."""

    def __init__(self, kernel: FlatKernel):
        self.kernel = kernel
        self.labels: dict[str, int] = {}
        self.blocks = self._cut()
        self.exit = len(self.blocks)
        for block in self.blocks:
            block.successors = self._successors(block)
        self.postdominators = self._postdominators()
        self.fused_until = self._fuse()
        self.spin_blocks = self._spin_blocks()

    def _cut(self) -> list[Block]:
        blocks = [Block(0)]
        for item in self.kernel.body:
            last = blocks[-1]
            if isinstance(item, Label):
                if last.instructions:
                    last = Block(len(blocks))
                    blocks.append(last)
                last.has_label = True
                self.labels[item.name] = last.index
                continue
            if last.instructions and (ends_block(last.instructions[-1]) or is_collective(item)):
                last = Block(len(blocks))
                blocks.append(last)
            last.instructions.append(item)
        return blocks

    def target(self, label: str, i: Instruction) -> int:
        """Return the block index of a label."""
        if label not in self.labels:
            raise PtxError(f"PTX line {i.ptx_line}: unknown label {label}")
        return self.labels[label]

    def _successors(self, block: Block) -> list[int]:
        i, following = block.terminator, block.index + 1
        if i is None or is_block_barrier(i):
            return [following]
        if i.root == "brx":
            if i.target not in self.kernel.branch_tables:
                raise PtxError(f"PTX line {i.ptx_line}: unknown branch table {i.target}")
            return [self.target(t, i) for t in self.kernel.branch_tables[i.target]]
        taken = self.target(i.target, i) if i.root == "bra" else self.exit
        return [taken, following] if i.guard else [taken]

    def _postdominators(self) -> list[int]:
        """Bit sets: bit j of entry i says that block j lies on every way from i to the exit."""
        everything = (1 << (self.exit + 1)) - 1
        result = [everything] * self.exit + [1 << self.exit]
        changed = True
        while changed:
            changed = False
            for block in reversed(self.blocks):
                meet = everything
                for s in block.successors:
                    meet &= result[s]
                new = meet | 1 << block.index
                if new != result[block.index]:
                    result[block.index], changed = new, True
        return result

    def _fuse(self) -> list[int]:
        last = list(range(len(self.blocks)))
        for block in reversed(self.blocks[:-1]):
            following = self.blocks[block.index + 1]
            if block.terminator is None and not following.has_label:
                last[block.index] = last[following.index]
        return last

    def _spin_blocks(self) -> set[int]:
        """Blocks of loops that watch memory others change: there, waiting lanes need fairness."""
        spin: set[int] = set()
        for block in self.blocks:
            for head in block.successors:
                if head <= block.index:
                    body = range(head, block.index + 1)
                    if any(_watches_memory(i) for b in body for i in self.blocks[b].instructions):
                        spin.update(body)
        return spin


def _watches_memory(i: Instruction) -> bool:
    if i.root == "atom":
        return True
    return i.root == "ld" and not {"volatile", "acquire", "relaxed"}.isdisjoint(i.modifiers)


def live_in(blocks: list[Block], reads_writes) -> list[set[str]]:
    """Registers whose value may still be read at the start of each block.

    ``reads_writes(instruction)`` returns (read names, fully written names).
    """
    use, kill = [], []
    for block in blocks:
        used: set[str] = set()
        killed: set[str] = set()
        for i in block.instructions:
            reads, writes = reads_writes(i)
            used |= reads - killed
            killed |= writes
        use.append(used)
        kill.append(killed)
    live = [set() for _ in range(len(blocks) + 1)]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            n = block.index
            out = set().union(*(live[s] for s in block.successors))
            new = use[n] | (out - kill[n])
            if new != live[n]:
                live[n], changed = new, True
    return live
