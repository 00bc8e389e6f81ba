"""What one memory request costs: sectors, bank wavefronts, bytes; computed once per pattern."""

from __future__ import annotations

import numpy as np

from .addresses import Geometry, Pattern

SECTOR = 32
BANKS = 32


def _active(pattern: Pattern, geometry: Geometry) -> np.ndarray | None:
    return None if pattern.mask is None else geometry.by_warp(pattern.mask.array)


def lanes_and_warps(pattern: Pattern, geometry: Geometry) -> tuple[int, int]:
    """Active lanes and warps with at least one, over the whole wave."""
    if pattern.mask is None:
        return geometry.blocks * geometry.threads, geometry.all_warps
    return pattern.mask.count, pattern.mask.warps


def count_distinct(keys: np.ndarray, active: np.ndarray | None) -> int:
    """Sum over rows of the number of different active keys in the last axis."""
    if active is not None:
        keys = np.where(active, keys, np.iinfo(np.int64).min)
    steps = keys[..., 1:] != keys[..., :-1]
    if not (keys[..., 1:] >= keys[..., :-1]).all():
        keys = np.sort(keys, axis=-1)
        steps = keys[..., 1:] != keys[..., :-1]
    distinct = int(np.count_nonzero(steps)) + int(np.prod(keys.shape[:-1]))
    if active is None:
        return distinct
    return distinct - int(np.count_nonzero(~active.all(axis=-1)))


def count_sectors(pattern: Pattern, phase: int, geometry: Geometry) -> int:
    """Distinct 32-byte sectors per warp request, summed; ``phase`` = start address mod 32."""
    if pattern.mask is None and pattern.rel.shape[1] == 1:
        return geometry.all_warps
    sectors = geometry.by_warp((pattern.rel + phase) >> 5)
    active = _active(pattern, geometry)
    if active is not None and active.shape[0] != sectors.shape[0]:
        sectors, active = np.broadcast_arrays(sectors, active)
    return count_distinct(sectors, active) * geometry.repeats(pattern.rel)


def count_wavefronts(pattern: Pattern, phase: int, width: int, geometry: Geometry) -> int:
    """Shared-memory wavefronts, summed; ``phase`` = start address mod 128.

    Up to 4 bytes a lane the warp goes at once, 8 bytes in two phases of 16 lanes, 16 bytes in
    four of 8. A phase costs the largest number of different 4-byte words that share a bank.
    """
    if pattern.mask is None and pattern.rel.shape[1] == 1:
        return geometry.all_warps * max(1, width // 4)
    words = geometry.by_warp((pattern.rel + phase) >> 2)
    active = _active(pattern, geometry)
    if active is not None:
        words, active = np.broadcast_arrays(words, active)
    return wavefronts_of(words, active, width) * geometry.repeats(pattern.rel)


def wavefronts_of(words: np.ndarray, active: np.ndarray | None, width: int) -> int:
    """Wavefronts of lane word addresses of shape (..., 32), ``width`` bytes from each."""
    lanes = 32 // max(1, width // 4)
    phases = words.reshape(-1, lanes)
    live = np.ones(phases.shape, bool) if active is None else active.reshape(-1, lanes)
    per_lane = max(1, width // 4)
    expanded = (phases[:, :, None] + np.arange(per_lane)).reshape(len(phases), -1)
    live = np.repeat(live, per_lane, axis=1)
    keys = np.where(live, expanded, -1)
    keys = np.sort(keys, axis=1)
    first = np.ones(keys.shape, bool)
    first[:, 1:] = keys[:, 1:] != keys[:, :-1]
    first &= keys >= 0
    rows = np.broadcast_to(np.arange(len(keys))[:, None], keys.shape)[first]
    per_bank = np.bincount(rows * BANKS + keys[first] % BANKS, minlength=len(keys) * BANKS)
    return int(per_bank.reshape(len(keys), BANKS).max(axis=1).sum())
