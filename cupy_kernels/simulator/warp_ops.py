"""shfl, vote, match, redux and their kin, over all warps of a wave at once.

That the member lanes are all present is the scheduler's business (``scheduler``): here they are.
"""

from __future__ import annotations

import numpy as np

from .addresses import Geometry, Mask

LANES = np.arange(32, dtype=np.int64)
FULL = 0xFFFFFFFF
_BIT = np.uint32(1) << np.arange(32, dtype=np.uint32)
_REDUCE = {
    "add": (np.add, 0),
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
}


def shuffle_lanes(mode: str, b, c):
    """Source lane and in-range predicate of every lane; ``b`` and ``c`` end in an axis of 32."""
    bval, clamp, segment = b & 31, c & 31, (c >> 8) & 31
    low = LANES & segment
    high = low | (clamp & ~segment)
    if mode == "up":
        j = LANES - bval
        inside = j >= high
    elif mode == "down":
        j = LANES + bval
        inside = j <= high
    elif mode == "bfly":
        j = LANES ^ bval
        inside = j <= high
    else:
        j = low | (bval & ~segment)
        inside = j <= high
    return np.where(inside, j, LANES), inside


class WarpOps:
    """Warp-collective operations of one wave."""

    def __init__(self, wave):
        self.wave, self.geometry = wave, wave.geometry
        self._lanes: dict = {}

    def check_own(self, members: np.ndarray, mask: Mask | None, index: int) -> None:
        """Every lane that executes a collective must be named in its own member mask."""
        if members.size == 1 and int(members.item()) == FULL:
            return
        bits = self.geometry.by_warp(members).astype(np.int64) >> LANES & 1
        outside = (bits == 0).reshape(bits.shape[0], -1)
        outside = outside if mask is None else outside & mask.array
        if outside.any():
            launch = self.wave.launch
            i = launch.counts[index].instruction
            lane = row, column, _ = launch.first_lane(outside, mask)
            value = int(np.broadcast_to(members, self.geometry.shape)[row, column])
            raise launch.fault(
                "divergent warp operation",
                f"{i.root} with member mask {value:#010x} is executed by lane {column % 32}, "
                "which the mask does not name",
                i,
                "the mask must name every lane that executes the instruction, itself included",
                lane,
            )

    def synchronise(self, members: np.ndarray, mask: Mask | None, index: int) -> None:
        """``bar.warp.sync``: orders the member lanes' shared accesses."""
        self.check_own(members, mask, index)
        ordering = self.wave.shared.ordering
        if mask is None and members.size == 1 and int(members.item()) == FULL:
            ordering.warp_barrier()
            return
        spread = self.geometry.by_warp(members)
        named = ((spread >> LANES.astype(np.uint32)) & np.uint32(1)).astype(bool)
        lanes = named.reshape(named.shape[0], -1)
        ordering.warp_barrier(lanes if mask is None else lanes & mask.array)

    def shuffle(self, mode: str, a, b, c, members, mask: Mask | None, index: int):
        """(values, in-range predicates)."""
        self.check_own(members, mask, index)
        if b.size == 1 and c.size == 1:
            key = (mode, int(b.item()), int(c.item()))
            if key not in self._lanes:
                lanes, inside = shuffle_lanes(mode, np.int64(key[1]), np.int64(key[2]))
                self._lanes[key] = (lanes, np.tile(inside, self.geometry.warps)[None])
            lanes, inside = self._lanes[key]
            if a.shape[1] == 1:
                return a, inside
            warps = a.reshape(a.shape[0], self.geometry.warps, 32)
            return warps.take(lanes, axis=2).reshape(a.shape), inside
        by_warp = self.geometry.by_warp
        lanes, inside = shuffle_lanes(
            mode, by_warp(b).astype(np.int64), by_warp(c).astype(np.int64)
        )
        warps, lanes = np.broadcast_arrays(by_warp(a), lanes)
        value = np.take_along_axis(warps, lanes, axis=2)
        return value.reshape(value.shape[0], -1), inside.reshape(inside.shape[0], -1)

    def _present(self, mask: Mask | None) -> np.ndarray:
        if mask is None:
            return np.ones((1, 1, 1), bool)
        return self.geometry.by_warp(mask.array)

    def _members(self, members: np.ndarray, mask: Mask | None) -> np.ndarray:
        """Bool (rows, warps, 32 lanes, 32 members), or (rows, warps, 1, 32) if all agree."""
        present = self._present(mask)
        if members.size == 1:
            named = (int(members.item()) >> LANES & 1).astype(bool)
            return (named & present)[:, :, None, :]
        spread = self.geometry.by_warp(members)[..., None]
        named = ((spread >> LANES.astype(np.uint32)) & np.uint32(1)).astype(bool)
        return named & present[:, :, None, :]

    def _spread(self, result: np.ndarray) -> np.ndarray:
        """(rows, warps, 1 or 32) to (rows, threads)."""
        rows = result.shape[0]
        full = np.broadcast_to(result, (rows, self.geometry.warps, 32))
        return full.reshape(rows, -1)

    def vote(self, mode: str, predicate, members, mask: Mask | None, index: int) -> np.ndarray:
        """ballot, any, all or uni."""
        self.check_own(members, mask, index)
        who = self._members(members, mask)
        yes = self.geometry.by_warp(predicate)[:, :, None, :] & who
        if mode == "ballot":
            return self._spread((yes * _BIT).sum(axis=-1, dtype=np.uint32))
        some = yes.any(axis=-1)
        every = (yes == who).all(axis=-1)
        return self._spread({"any": some, "all": every, "uni": every | ~some}[mode])

    def match(self, mode: str, value, members, mask: Mask | None, index: int):
        """(lane mask of equal values, all-equal predicate)."""
        self.check_own(members, mask, index)
        who = self._members(members, mask)
        warps = self.geometry.by_warp(value)
        same = (warps[:, :, :, None] == warps[:, :, None, :]) & who
        bits = (same * _BIT).sum(axis=-1, dtype=np.uint32)
        if mode == "any":
            return self._spread(bits), np.ones((1, 1), bool)
        agree = (same == who).all(axis=-1)
        return self._spread(np.where(agree, bits, np.uint32(0))), self._spread(agree)

    def reduce(self, operation: str, value, members, mask: Mask | None, index: int) -> np.ndarray:
        """add, min, max, and, or, xor over the member lanes."""
        self.check_own(members, mask, index)
        who = self._members(members, mask)
        warps = self.geometry.by_warp(value)[:, :, None, :]
        dtype = value.dtype
        if operation in ("min", "max"):
            limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
            neutral = limits.max if operation == "min" else limits.min
            function = np.minimum if operation == "min" else np.maximum
        else:
            function, neutral = _REDUCE[operation]
        neutral = np.array(neutral).astype(dtype)
        filled = np.where(who, warps, neutral)
        return self._spread(function.reduce(filled, axis=-1, dtype=dtype))

    def active_mask(self, mask: Mask | None) -> np.ndarray:
        """Bits of the lanes that execute together."""
        if mask is None:
            return np.full((1, 1), FULL, np.uint32)
        present = self._present(mask)
        return self._spread((present * _BIT).sum(axis=-1, dtype=np.uint32)[..., None])

    def elect(self, members, mask: Mask | None, index: int):
        """(elected lane, predicate): the lowest member lane is chosen."""
        self.check_own(members, mask, index)
        who = self._members(members, mask)
        leader = who.argmax(axis=-1).astype(np.uint32)
        lanes = self._spread(leader)
        own = np.tile(LANES, self.geometry.warps)[None]
        return lanes, lanes == own


def special_registers(geometry: Geometry, block, grid, first: int) -> dict[str, np.ndarray]:
    """Values of the special registers of a wave, keyed by name (uint32; clocks uint64)."""
    threads = np.arange(geometry.threads)
    blocks = np.arange(first, first + geometry.blocks).reshape(-1, 1)
    lane = threads % 32
    scalar = lambda v: np.full((1, 1), v, np.int64)  # noqa: E731
    values = {
        "tid.x": threads[None] % block[0],
        "tid.y": threads[None] // block[0] % block[1],
        "tid.z": threads[None] // (block[0] * block[1]),
        "ctaid.x": blocks % grid[0],
        "ctaid.y": blocks // grid[0] % grid[1],
        "ctaid.z": blocks // (grid[0] * grid[1]),
        "laneid": lane[None],
        "warpid": threads[None] // 32,
        "nwarpid": scalar(geometry.warps),
        "smid": blocks % 132,
        "nsmid": scalar(132),
        "gridid": scalar(0),
        "lanemask_eq": (1 << lane)[None],
        "lanemask_lt": ((1 << lane) - 1)[None],
        "lanemask_le": ((2 << lane) - 1)[None],
        "lanemask_gt": (FULL & ~((2 << lane) - 1))[None],
        "lanemask_ge": (FULL & ~((1 << lane) - 1))[None],
    }
    for n, axis in enumerate("xyz"):
        values[f"ntid.{axis}"] = scalar(block[n])
        values[f"nctaid.{axis}"] = scalar(grid[n])
    return values
