"""Which accesses of a block are ordered before which: barriers as points on one time line.

Every synchronisation advances ``time``; every shared-memory access is stamped with it. An old
access is ordered before a thread's present one if some synchronisation that both took part in
came between. Full barriers and ``__syncwarp`` need one number each; named barriers between some
warps need vector clocks, a matrix ``clock[block, warp, other warp]`` made on first use.
"""

from __future__ import annotations

import numpy as np

from .addresses import Geometry


class Ordering:
    """Happens-before edges of the blocks of one wave."""

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        self.time = 1
        self.block_sync = np.zeros((geometry.blocks, 1), np.int64)
        self.all_blocks = 0  # min(block_sync): everything older is ordered for everybody
        self.lane_sync = np.zeros((1, geometry.threads), np.int64)
        self.clock: np.ndarray | None = None
        self.alike = True  # every block has met the same synchronisations

    def block_barrier(self, blocks: np.ndarray | None = None) -> None:
        """A barrier over all threads of ``blocks`` (bool per block; None: all of the wave)."""
        self.time += 1
        if blocks is None:
            self.block_sync[:] = self.time
        else:
            self.block_sync[blocks] = self.time
        self.all_blocks = int(self.block_sync.min())
        self._compare_blocks()

    def warp_barrier(self, lanes: np.ndarray | None = None) -> None:
        """``__syncwarp`` executed by ``lanes`` (None: all)."""
        self.time += 1
        if lanes is None:
            self.lane_sync[:] = self.time
            return
        if lanes.shape[0] > self.lane_sync.shape[0]:
            self.lane_sync = np.repeat(self.lane_sync, lanes.shape[0], axis=0)
        self.lane_sync = np.where(lanes, self.time, self.lane_sync)
        self._compare_blocks()

    def _compare_blocks(self) -> None:
        same_barriers = self.all_blocks == int(self.block_sync.max())
        self.alike = same_barriers and self.lane_sync.shape[0] == 1 and self.clock is None

    def own_clock(self, block: int) -> np.ndarray:
        """The clock matrix of one block, shape (warps, warps)."""
        if self.clock is None:
            warps = self.geometry.warps
            self.clock = np.zeros((self.geometry.blocks, warps, warps), np.int64)
            self.alike = self.geometry.blocks == 1
        return self.clock[block]

    def partial_barrier(self, block: int, arriving: np.ndarray, waiting: np.ndarray) -> None:
        """A named barrier: ``waiting`` warps learn all that the ``arriving`` ones had done."""
        clock = self.own_clock(block)
        self.time += 1
        for warp in np.flatnonzero(arriving):
            clock[warp, warp] = self.time
        known = clock[arriving].max(axis=0)
        clock[waiting] = np.maximum(clock[waiting], known)

    def ordered(self, when, writer, several_warps, row, thread) -> np.ndarray:
        """True where an access stamped (``when``, ``writer``) precedes ``thread`` of ``row``.

        All arguments broadcast together. ``several_warps`` marks stamps that stand for accesses
        of more than one warp.
        """
        fine = when < self.block_sync[row, 0]
        lane_row = row if self.lane_sync.shape[0] > 1 else np.zeros_like(row)
        synced = np.minimum(self.lane_sync[lane_row, thread], self.lane_sync[lane_row, writer])
        same_warp = (writer >> 5 == thread >> 5) & ~several_warps
        fine = fine | (same_warp & (when < synced))
        if self.clock is not None:
            known = self.clock[row, thread >> 5, writer >> 5]
            fine = fine | (~several_warps & (when < known))
        return fine
