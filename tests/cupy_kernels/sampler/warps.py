"""What the lanes of a warp do together: shuffles, votes, matches, reductions."""

import numpy as np

from .case import sample

LANE = np.arange(32)
FULL = 0xFFFFFFFF


def _shuffled(x, mode, operand, width=32):
    """shfl.sync as the ISA states it, on (warps, 32); and whether the source was inside."""
    segment = LANE & ~(width - 1)
    last = segment | (width - 1)
    operand = operand & 31
    if mode == "idx":
        source = segment | (operand & (width - 1))
    else:
        source = {"up": LANE - operand, "down": LANE + operand, "xor": LANE ^ operand}[mode]
    inside = source >= segment if mode == "up" else source <= last
    source = np.broadcast_to(np.where(inside, source, LANE), x.shape)
    return np.take_along_axis(x, source, -1), np.broadcast_to(inside, x.shape)


@sample(grid=2, block=64)
def shuffles(rng):
    a = rng.integers(-999, 999, (4, 32)).astype(np.int32)
    source = rng.integers(-5, 40, (4, 32)).astype(np.int32)
    moves = [("idx", source), ("idx", source, 8), ("up", 3), ("up", 1, 4), ("down", 5)]
    moves += [("down", 2, 16), ("xor", 9), ("xor", 17, 16), ("down", source)]
    expected = {
        "out": np.stack([_shuffled(a, *move)[0] for move in moves], -1),
        "wide": _shuffled(a, "xor", 1)[0] * 0.125,
    }
    outputs = {"out": np.zeros((4, 32, 9), np.int32), "wide": np.zeros((4, 32))}
    return {"a": a, "source": source, **outputs}, expected


@sample(block=64)
def shuffle_predicate(rng):
    a = rng.integers(-999, 999, (2, 32)).astype(np.int32)
    moved, inside = _shuffled(a, "up", 4)
    source = (np.arange(64).reshape(2, 32) + 1) % 12
    ring = np.where(LANE < 12, np.take_along_axis(a, source, 1), -1)
    expected = np.stack([moved, inside, ring], -1)
    return {"a": a, "out": np.zeros((2, 32, 3), np.int32)}, {"out": expected}


def _ballot(flags):
    return (flags.astype(np.int64) << LANE).sum(-1)[..., None]


@sample(grid=2, block=64)
def votes(rng):
    a = rng.integers(-85, 95, (4, 32)).astype(np.int32)
    a[1] = abs(a[1])
    a[2, 7], a[3, 9] = -95, 99
    upper = np.where(LANE >= 20, _ballot((a & 1 == 1) & (LANE >= 20)), 77)
    same_sign = (a >= 0).all(-1) | (a < 0).all(-1)
    columns = [_ballot(a > 0), (a > -90).all(-1)[:, None], (a > 95).any(-1)[:, None]]
    columns += [same_sign[:, None], upper]
    expected = np.stack([np.broadcast_to(c, (4, 32)) for c in columns], -1)
    return {"a": a, "out": np.zeros((4, 32, 5), np.uint32)}, {"out": expected}


@sample(grid=2, block=64)
def match_lanes(rng):
    a = rng.integers(0, 5, (4, 32)).astype(np.int32)
    a[1] = 4
    a[3, 5] = 1 << 21
    equal = _ballot(a[:, :, None] == a[:, None, :])[..., 0]
    same, same_upper = ((x == x[:, :1]).all(-1)[:, None] for x in (a, a >> 20))
    columns = [equal, np.where(same, FULL, 0), same, equal, np.where(same_upper, FULL ^ 1, 0)]
    expected = np.stack([np.broadcast_to(c, (4, 32)) for c in columns], -1)
    return {"a": a, "out": np.zeros((4, 32, 5), np.uint32)}, {"out": expected}


@sample(grid=2, block=64)
def warp_reductions(rng):
    a = rng.integers(-(2**31), 2**31, (4, 32)).astype(np.int32)
    unsigned = a.view(np.uint32)
    folds = [a.sum(-1, dtype=np.int32), a.min(-1), a.max(-1), unsigned.min(-1), unsigned.max(-1)]
    folds.append(np.bitwise_and.reduce(unsigned | 0xF0F, -1))
    folds.append(np.bitwise_or.reduce(unsigned & 0xFF00, -1))
    folds.append(np.bitwise_xor.reduce(unsigned, -1))
    columns = [np.broadcast_to(f.astype(np.int32)[:, None], (4, 32)) for f in folds]
    first = np.where(LANE < 7, a[:, :7].sum(-1, dtype=np.int32)[:, None], 0)
    expected = np.stack([*columns, first], -1)
    return {"a": a, "out": np.zeros((4, 32, 9), np.int32)}, {"out": expected}


@sample(block=64)
def active_mask(rng):
    a = rng.integers(0, 100, (2, 32)).astype(np.int32)
    below, upto = (1 << LANE) - 1, FULL ^ ((1 << LANE) - 1)
    # The even lanes store the complement of their own mask, which is the mask of the odd ones.
    columns = [below, upto, _ballot(a % 2 == 1)]
    expected = np.stack([np.broadcast_to(c, (2, 32)) for c in columns], -1)
    return {"a": a, "out": np.zeros((2, 32, 3), np.uint32)}, {"out": expected}
