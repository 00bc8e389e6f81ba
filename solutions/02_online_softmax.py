# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # 02 · Online softmax
# Part I, NumPy on the model machine. About 25 minutes. You need lesson 01 and no GPU.

# %%
import math
from collections.abc import Sequence
from functools import reduce

import matplotlib.pyplot as plt
import numpy as np

from autograder import check, doctor, grade_function, hint, progress, ready
from autograder.report import Report
from lessons.widgets.tile_rescaling import PRESETS, TileRescaling
from reference_numpy.machine import Machine, SramOverflow
from reference_numpy.online_softmax import State, shifted_exp
from reference_numpy.tiling import tiles

doctor()

# %% [markdown]
# ## The question
# A row of scores comes past in tiles. You see a tile once, then it is gone. Softmax divides each
# e^(s − m) by the sum over the whole row, and m is the maximum of the whole row.
#
# After the first tile you know neither. Can you still start adding up, and be **exactly** right in
# the end?

# %% [markdown]
# ## The picture
# One row, four scores, two tiles: [1, 3] and then [2, 5]. Step through it. The moment to watch is
# *rescale*: a larger maximum turns up, and everything added so far is wrong by the same factor.
#
# ![The second tile has been added: l = 1.2034](../lessons/images/tile_rescaling_added.png)
#
# This picture stands still, at the moment when the second tile has joined. Step there yourself.

# %% tags=["widget"]
TileRescaling([[1, 3], [2, 5]])

# %% [markdown]
# Change a score in the widget and step again. What has to happen so that no rescaling is needed?

# %% [markdown]
# ## The idea in code
# The same row by hand. **After tile 1** the maximum so far is m = 3, and the sum of e^(s − m) is
#
#     l = e^(1−3) + e^(3−3) = 0.1353 + 1 = 1.1353

# %%
m = max(1, 3)
l = math.exp(1 - m) + math.exp(3 - m)
print(f"m = {m}, l = {l:.4f}")

# %% [markdown]
# **Tile 2** holds a 5. All terms in l should have been e^(s − 5) and are e^(s − 3). But
#
#     e^(s − 5) = e^(s − 3) · e^(3 − 5)
#
# and the second factor does not depend on s. One multiplication repairs the whole sum, however many
# terms are in it, although the scores themselves are gone.

# %%
m_new = max(m, 2, 5)
factor = math.exp(m - m_new)
print(f"factor e^({m}−{m_new}) = {factor:.4f}")
print(f"the old sum becomes {factor:.4f} · {l:.4f} = {factor * l:.4f}")

# %% [markdown]
# Now the new terms can join.

# %%
l_new = factor * l + math.exp(2 - m_new) + math.exp(5 - m_new)
print(f"l = {factor * l:.4f} + {math.exp(2 - 5):.4f} + {math.exp(0):.0f} = {l_new:.4f}")

in_one_go = [math.exp(s - 5) for s in (1, 3, 2, 5)]
print("in one go:", " + ".join(f"{e:.4f}" for e in in_one_go), f"= {sum(in_one_go):.4f}")

# %% [markdown]
# Nothing was approximated. That is the whole trick, and all that FlashAttention adds to softmax.

# %% [markdown]
# ### The output can be repaired too
# Attention does not want P, it wants O = P V, and O can start early as well. Leave the maximum out
# for a moment and write A = e^S. After the first tile, divide by the sum you have:
#
#     l⁽¹⁾ = Σ A⁽¹⁾                       O⁽¹⁾ = A⁽¹⁾ V⁽¹⁾ / l⁽¹⁾
#
# That is the wrong denominator. When the second tile has come, put it right:
#
#     l⁽²⁾ = l⁽¹⁾ + Σ A⁽²⁾                O⁽²⁾ = (l⁽¹⁾ / l⁽²⁾) · O⁽¹⁾ + A⁽²⁾ V⁽²⁾ / l⁽²⁾

# %%
V = np.array([[1, 0], [0, 1], [1, 1], [2, -1]], np.float64)
A1, A2 = np.exp([1, 3]), np.exp([2, 5])

l1 = A1.sum()
O1 = A1 @ V[:2] / l1
l2 = l1 + A2.sum()
O2 = (l1 / l2) * O1 + A2 @ V[2:] / l2

A = np.concatenate([A1, A2])
print("after tile 1:", O1.round(4), " divided by", round(l1, 4))
print("after tile 2:", O2.round(4), f" the old O counts {l1 / l2:.4f}")
print("in one go:   ", (A @ V / A.sum()).round(4))

# %% [markdown]
# l⁽¹⁾/l⁽²⁾ is the share of the weight that the first tile keeps. (Tick *divide at every tile* in
# the widget to see this form.) FlashAttention-1 works in this form (lesson 03). FlashAttention-2
# keeps the undivided sum o = Σ e^(s − m)·v and divides once at the end (lesson 05). Both also
# shift by m, because of what comes next.

# %% [markdown]
# ### What the maximum is for
# Softmax does not change when a constant is subtracted from all scores. So any shift would do: none
# at all, the first tile's maximum for good, a maximum that starts at 0. fp32 disagrees. It has no
# number above e^88.7, and below e^−104 only 0.

# %%
SHIFTS = {
    "none": lambda row: 0,
    "first tile's maximum": lambda row: row[0].max(),
    "maximum, started at 0": lambda row: max(0, np.max(row)),
    "maximum of the row": np.max,
}
KILLERS = {p["name"]: np.array(p["scores"], np.float32) for p in PRESETS[:3]}


def fate(row, shift):
    """The sum of e^(s − shift) in fp32, and whether weights come of it."""
    with np.errstate(all="ignore"):
        e = np.exp(row - np.float32(shift))
        return f"l = {e.sum():.4g}" + ("" if np.isfinite(e / e.sum()).all() else ", P is NaN")


print(f"{'shift':<24}" + "".join(f"{name:>26}" for name in KILLERS))
for name, shift_of in SHIFTS.items():
    print(f"{name:<24}" + "".join(f"{fate(row, shift_of(row)):>26}" for row in KILLERS.values()))

# %% [markdown]
# On the two blocks all four give the right weights. `rising` (0 to 150) overflows unless the
# maximum **moves**. On `deep negative` (about −300) every term is 0, and 0/0 is NaN, unless m
# starts at **−∞**. Each fixture catches a mistake that the other lets pass, so the grader always
# tries both.
#
# Choose them from the presets and watch the factor: on `rising` the old sum all but vanishes.

# %% tags=["widget"]
TileRescaling(KILLERS["rising"].tolist())

# %% [markdown]
# ## Exercise
# ### Softmax over tiles
# `online_softmax(tiles)` gets a list of tiles of the same rows, each of shape (rows, Bc), and
# returns m and l of every row and the tiles of P. No bytes are graded here, only exactness.
#
# Two things are in the cell's reach: `shifted_exp(s, m)` is e^(s − m), and 0 where s = −∞ (a masked
# score; −∞ − (−∞) would be NaN). `m[..., None]` turns one number per row into a
# column.
#
# A first try, and its report. One factor is missing:


# %%
def first_try(tiles):
    m, l = np.float32(-np.inf), np.float32(0)
    for s in tiles:
        m = np.maximum(m, s.max(axis=-1))
        l = l + shifted_exp(s, m[..., None]).sum(axis=-1)
    return m, l, [shifted_exp(s, m[..., None]) / l[..., None] for s in tiles]


Report(grade_function(first_try, "online_softmax"))

# %% exercise="online_softmax"
# Work out m_new first, and keep the old m until the old sum has been brought to m_new.
from reference_numpy.online_softmax import online_softmax  # include

# %% tags=["check"]
check(online_softmax)

# %% [markdown]
# ### Merging two parts
# Nothing says that a tile must join from the right. Let two workers each take half of the keys.
# Each ends with a **state**: its own m, its own l, and its own undivided sum o = Σ e^(s − m)·v,
# one row of length d for each query. `merge` joins two states into the state of all keys.
#
# Neither is special: both move to the larger maximum, and l and o of a part shrink by the same
# factor. A part that saw no key is (−∞, 0, 0) and must change nothing.

# %% exercise="merge"
# State is the tuple (m, l, o). shifted_exp(m_a, m) is the factor of part a.
from reference_numpy.online_softmax import merge  # include

# %% [markdown]
# ## Check

# %% tags=["check"]
check(merge)

# %% [markdown]
# The hand example once more, by your two functions. With V = I the output O is P itself.

# %%
blocks = [np.array([[1, 3]], np.float32), np.array([[2, 5]], np.float32)]
m, l, P = ready("online_softmax")(blocks)
print(f"online_softmax: m = {m[0]:.0f}, l = {l[0]:.4f}, P = {np.hstack(P)[0].round(4)}")


# %%
def state(s, v):
    """The state (m, l, o) of one tile of scores s (rows, Bc) and its values v (Bc, d)."""
    m = s.max(axis=1)
    p = np.exp(s - m[:, None])
    return m, p.sum(axis=1), p @ v


join = ready("merge")
V = np.eye(4, dtype=np.float32)
m, l, o = join(state(blocks[0], V[:2]), state(blocks[1], V[2:]))
print(f"merge:          m = {m[0]:.0f}, l = {l[0]:.4f}, P = {(o / l[:, None])[0].round(4)}")

# %% [markdown]
# **`merge` is associative.** Sixteen parts of a row with 4096 keys, joined from the left, from the
# right, and in pairs like a tournament: the same state, but for the last bits of fp32.

# %%
rng = np.random.default_rng(0)
S = rng.standard_normal((8, 4096)).astype(np.float32)
V = rng.standard_normal((4096, 16)).astype(np.float32)
parts = [state(S[:, cols], V[cols]) for cols in tiles(4096, 256)]


def tournament(parts):
    """Join neighbours until one is left."""
    while len(parts) > 1:
        parts = [join(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


ways = {
    "from the left": reduce(join, parts),
    "from the right": reduce(lambda b, a: join(a, b), reversed(parts)),
    "in pairs": tournament(parts),
}

# %%
e = np.exp(S.astype(np.float64))
truth = e @ V / e.sum(axis=1, keepdims=True)
for way, (_, l, o) in ways.items():
    error = np.abs(o / l[:, None] - truth).max()
    print(f"{way:<16} l[0] = {l[0]:.4f}, max error of O = {error:.1e}")

# %% [markdown]
# So the order of the work is free. FlashAttention-1 and -2 take the keys in one loop or another,
# and Flash-Decoding (a later lesson) gives the parts of one long row to many SMs and merges at the
# end.

# %% [markdown]
# ## What the hardware says
# Lesson 00 ended with a row that does not fit on the chip. Here is one, 4096 scores beside an SRAM
# for 1024, handed to your function tile by tile: each time it asks for a tile, the tile is loaded
# and paid for.


# %%
class RowsInHbm(Sequence):
    """Tiles of columns of an HBM array, loaded whenever they are looked at."""

    def __init__(self, X, Bc):
        self.X, self.cols = X, list(tiles(X.shape[1], Bc))

    def __len__(self):
        return len(self.cols)

    def __getitem__(self, j):
        if isinstance(j, slice):
            return [self[i] for i in range(len(self))[j]]
        return self.X[:, self.cols[j]]


# %%
machine = Machine(sram_bytes=4 * 1024)
X = machine.hbm("X", rng.standard_normal((1, 4096)).astype(np.float32))
Y = machine.empty("Y", X.shape)
try:
    m, l, p_tiles = ready("online_softmax")(RowsInHbm(X, Bc=256))
    for cols, p in zip(tiles(4096, 256), p_tiles, strict=True):
        Y[:, cols] = p
    reads = machine.traffic["X"].read / X.nbytes
    print(f"X is read {reads:g}×, Y written {machine.traffic['Y'].written / Y.nbytes:g}×")
except SramOverflow as overflow:
    print("Your function holds tiles that it no longer needs:", overflow)

# %% [markdown]
# Two sweeps, and one store: 3 numbers moved for each score, where the three kernels of lesson 00
# move 4. A softmax is memory-bound, so it can run at best 4/3 times as fast, on any GPU of lesson
# 00. (That is the roofline's word. There is no GPU in this lesson and no time was measured.)
#
# The second sweep is there only because P was asked for. Attention asks for O, and O is repaired
# as it goes. There **one sweep is enough**, and S and P need never exist. That is lesson 03.

# %% [markdown]
# ### Your own scores
# One row of attention scores of d = 64 and 16 keys, in tiles of four, with a V of two columns.
# Replace `row` by scores of your own (up to 32) and run the cell again.

# %% tags=["widget"]
q, K = rng.standard_normal(64), rng.standard_normal((16, 64))
row = (K @ q / 8).round(1) + 0.0  # + 0.0 makes −0 a plain 0
V = rng.standard_normal((len(row), 2)).round(1)

cut = [np.array([row[cols]], np.float32) for cols in tiles(len(row), 4)]
m, l, P = ready("online_softmax")(cut)
print(f"your function: m = {m[0]:.1f}, l = {l[0]:.4f}, O = {(np.hstack(P) @ V)[0].round(4)}")

widget = TileRescaling(row.tolist(), V.tolist(), tile=4)
end = widget.trace[-1]
print(f"the widget:    m = {end['m']:.1f}, l = {end['l']:.4f}, O = {np.round(end['out'], 4)}")
widget

# %% [markdown]
# ### How often does the maximum move?
# A tile needs rescaling only if it brings a new maximum. On random scores tile j does so with
# probability 1/j: each of the j tiles seen so far is equally likely to hold the largest.

# %%
S = rng.standard_normal((20_000, 32, 8))  # 20,000 rows, 32 tiles of 8
best = np.maximum.accumulate(S.max(axis=2), axis=1)
moves = np.r_[1.0, (best[:, 1:] > best[:, :-1]).mean(axis=0)]
j = np.arange(1, 33)

fig, ax = plt.subplots(figsize=(8, 3.2))
ax.bar(j, moves, color="#56B4E9", label="random scores")
ax.plot(j, 1 / j, color="black", marker=".", label="1/j")
ax.axhline(1, color="#D55E00", linestyle="--", label="rising: every tile")
ax.set_xlabel("tile j")
ax.set_ylabel("share of rows whose maximum moves")
ax.legend()
plt.show()
print(f"random scores: {moves.sum():.2f} of 32 tiles; 1 + 1/2 + ... + 1/32 = {(1 / j).sum():.2f}")

# %% [markdown]
# ## One question to take along
# Every tile multiplies l and o by the factor, and nearly always the factor is 1. On a row of
# 131,072 keys in tiles of 128 it is about 7.5 times out of 1024 that it matters.
#
# What would you save by skipping the multiplication when the maximum has not moved? And when it has
# moved only a little, must m move at all? (FlashAttention-4 asks this, and so will a later lesson.)

# %%
progress()

# %% [markdown]
# ## Sources
# - M. Milakov, N. Gimelshein, *Online normalizer calculation for softmax* (arXiv 1805.02867): the
#   running maximum and denominator, and the 4 accesses that become 3.
# - T. Dao et al., *FlashAttention* (arXiv 2205.14135), section 3.1: joining blocks by m and l.
# - T. Dao, *FlashAttention-2* (arXiv 2307.08691), section 2.3: the two-block form with local
#   denominators; section 3.1: one division at the end.
