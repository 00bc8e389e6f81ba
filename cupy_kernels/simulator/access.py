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


def count_moves(source: Pattern, target: Pattern, phases: tuple, geometry: Geometry) -> int:
    """Distinct pairs of a 32-byte source sector and a 32-byte target sector, per warp request.

    One chunk that several lanes copy to both halves of a sector counts once; the card moves twice.
    """
    from_sector = geometry.by_warp((source.rel + phases[0]) >> 5)
    to_sector = geometry.by_warp((target.rel + phases[1]) >> 5)
    pairs = from_sector << 16 | to_sector
    active = _active(source, geometry)
    if active is not None:
        pairs, active = np.broadcast_arrays(pairs, active)
    return count_distinct(pairs, active) * geometry.repeats(pairs)


def count_wavefronts(
    pattern: Pattern, phase: int, width: int, geometry: Geometry, joins: bool
) -> tuple[int, int]:
    """Shared-memory wavefronts and their conflict-free number, summed over the wave's warps.

    ``phase`` = start address mod 128. Up to 4 bytes a lane the warp goes at once, 8 bytes in two
    phases of 16 lanes, 16 bytes in four of 8. A phase costs the largest number of different 4-byte
    words that share a bank; one without an active lane costs nothing. ``joins``: a plain load,
    whose phases go two by two if every lane's neighbour (lane ^ 1, or else lane ^ 2 for all lanes)
    asks for the same address or is inactive. So an H200 counted 350 patterns.
    """
    if pattern.mask is None and pattern.rel.shape[1] == 1:
        phases = max(1, width // (8 if joins else 4))
        return geometry.all_warps * phases, geometry.all_warps * phases
    words = geometry.by_warp((pattern.rel + phase) >> 2)
    active = _active(pattern, geometry)
    if active is not None:
        words, active = np.broadcast_arrays(words, active)
    repeats = geometry.repeats(pattern.rel)
    wavefronts, ideal = wavefronts_of(words, active, width, joins)
    return wavefronts * repeats, ideal * repeats


def wavefronts_of(
    words: np.ndarray, active: np.ndarray | None, width: int, joins: bool
) -> tuple[int, int]:
    """The two numbers for lane word addresses of shape (..., 32), ``width`` bytes from each."""
    words = words.reshape(-1, 32)
    live = np.ones(words.shape, bool) if active is None else active.reshape(-1, 32)
    per_lane = max(1, width // 4)
    phase = np.broadcast_to(np.arange(32) * per_lane // 32, words.shape)
    if joins and per_lane > 1:
        phase = np.where(_go_together(words, live)[:, None], phase // 2, phase)
    rows = phase + np.arange(len(words))[:, None] * per_lane
    keys = (rows << 40 | words)[live][:, None] + np.arange(per_lane)
    keys = np.unique(keys)
    slots = (keys >> 40) * BANKS + keys % BANKS
    per_bank = np.bincount(slots, minlength=len(words) * per_lane * BANKS)
    costs = per_bank.reshape(-1, BANKS).max(axis=1)
    return int(costs.sum()), int(np.count_nonzero(costs))


def _go_together(words: np.ndarray, live: np.ndarray) -> np.ndarray:
    """For each warp: do all lanes agree with lane ^ 1, or all with lane ^ 2?"""
    agree = [
        ~live | ~live[:, lanes] | (words == words[:, lanes])
        for lanes in (np.arange(32) ^ 1, np.arange(32) ^ 2)
    ]
    return agree[0].all(axis=1) | agree[1].all(axis=1)
