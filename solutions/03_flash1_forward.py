# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # 03 · FlashAttention-1: the tiled forward pass
# Part I, NumPy on the model machine. About 25 minutes. It joins lesson 01's three kernels and
# lesson 02's online softmax.

# %%
import matplotlib.pyplot as plt
import numpy as np

from autograder import check, doctor, grade_function, hint, progress, ready
from autograder.report import Report
from lessons.widgets.traffic import TrafficView
from reference_numpy import io_complexity
from reference_numpy.flash1_forward import paper_tile_sizes
from reference_numpy.io_complexity import Problem, total
from reference_numpy.machine import HbmArray, Machine
from reference_numpy.online_softmax import divide_rows, log_sum_exp, shifted_exp
from reference_numpy.oracle import attention
from reference_numpy.roofline import DEVICES
from reference_numpy.tiling import cdiv, fully_masked, mask_scores, tiles

doctor()

# %% [markdown]
# ## The question
# Attention reads three arrays of N×d and writes one. In lesson 01 it also wrote and read S and P,
# which are N×N, and they were nearly all of the traffic:

# %%
N, d = 4096, 64
needed, moved = 4 * N * d, 4 * N * d + 4 * N * N
print(f"Q, K, V, O: {needed:>12,} elements")
print(f"moved:      {moved:>12,} elements, {moved / needed:.0f} times as many")

# %% [markdown]
# S and P are nobody's result. In lesson 02 you learned to take a softmax without having the whole
# row. So: **can O be computed with S and P never leaving the chip, and what does that cost?**

# %% [markdown]
# ## The picture
# ![FlashAttention-1 begins: a tile of K moves from HBM to SRAM](../lessons/images/traffic.png)
#
# Two machines run the same problem: N = 64, d = 16, tiles of 16 rows. One runs the three kernels,
# the other FlashAttention-1. Step through the tiles and watch the counters.
#
# FlashAttention-1 has no S and no P. Instead, something else is read again and again. What is it?


# %%
def machine_for(Q, K, V, *, sram_bytes, scores=False):
    """A machine with Q, K, V and O in HBM, and either S and P or l, m and LSE."""
    machine = Machine(sram_bytes=sram_bytes)
    arrays = [machine.hbm(name, x) for name, x in zip("QKV", (Q, K, V), strict=True)]
    if scores:
        arrays += [machine.empty(name, (len(Q), len(K))) for name in "SP"]
    arrays.append(machine.empty("O", Q.shape))
    if not scores:
        arrays += [machine.empty(name, (len(Q),)) for name in ("l", "m", "LSE")]
    return machine, arrays


def normal(N, d, seed=0):
    """Q, K and V of standard normal numbers, each (N, d)."""
    return np.random.default_rng(seed).standard_normal((3, N, d)).astype(np.float32)


# %% tags=["widget"]
data, size = normal(64, 16), {"Br": 16, "Bc": 16, "scale": 0.25}
three, arrays = machine_for(*data, sram_bytes=9 * 1024, scores=True)
ready("three_kernels")(three, *arrays, **size)
flash, arrays = machine_for(*data, sram_bytes=9 * 1024)
ready("flash1_forward")(flash, *arrays, **size, causal=False)
TrafficView({"three kernels": three, "FlashAttention-1": flash})

# %% [markdown]
# The outer loop brings in a tile of K and V, once. The inner loop lets every tile of queries pass
# by, together with what is known about it so far: O, l and m. These are what is read again and
# again. They are N×d and N, not N×N, and that is the whole trick.

# %% [markdown]
# ## The idea in code
# Four queries, four keys, d = 2, tiles of two rows. To keep the numbers small, scale = 1.

# %%
tiny_Q = np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32)
tiny_K = np.array([[1, 0], [3, 1], [2, 2], [5, 0]], np.float32)
tiny_V = np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32)
tiny_Q @ tiny_K.T

# %% [markdown]
# Row 0 is an old friend: the scores [1, 3, 2, 5] of lesson 02. Its final denominator was 1.2034.
#
# **First pass.** K₀ and V₀ (keys 0 and 1) come in and stay. Queries 0 and 1 come in, S₀₀ is
# computed, and it is plain softmax on a small tile.

# %%
machine, (Q, K, V, O, l, m, LSE) = machine_for(tiny_Q, tiny_K, tiny_V, sram_bytes=256)
k, v = K[0:2], V[0:2]
q = Q[0:2]
s = q @ k.T
m_tile = s.max(axis=1)
p = np.exp(s - m_tile[:, None])
l_tile = p.sum(axis=1)
print(f"query 0: s = {s[0]}, m = {m_tile[0]}, p = {p[0].round(4)}, l = {l_tile[0]:.4f}")
O[0:2], l[0:2], m[0:2] = p @ v / l_tile[:, None], l_tile, m_tile
machine.to_host("O").round(4)

# %% [markdown]
# By hand for query 0: p = [e⁻², 1] = [0.1353, 1], l = 1.1353, and
# O = (0.1353·[1, 0] + 1·[0, 1]) / 1.1353 = [0.1192, 0.8808].
#
# What stands in HBM now is a complete answer to a smaller question: attention over the first two
# keys. Rows 2 and 3 still hold NaN, because nothing has been stored there.

# %% [markdown]
# **Second pass.** K₁ and V₁ (keys 2 and 3) come in. Queries 0 and 1 come by again, with O, l and m.
# Query 0's new scores are [2, 5]. Two answers, each to half of the question, must become one.
#
# Each was computed with a maximum of its own. So first both move to the common maximum, 5:

# %%
k, v = K[2:4], V[2:4]
q, o_old, l_old, m_old = Q[0:2], O[0:2], l[0:2], m[0:2]
s = q @ k.T
m_tile = s.max(axis=1)
p = np.exp(s - m_tile[:, None])
l_tile = p.sum(axis=1)
m_new = np.maximum(m_old, m_tile)
keep, join = np.exp(m_old - m_new) * l_old, np.exp(m_tile - m_new)
l_new = keep + join * l_tile
print(f"keep = e^({m_old[0]:.0f} − {m_new[0]:.0f}) · {l_old[0]:.4f} = {keep[0]:.4f}")
print(f"join = e^({m_tile[0]:.0f} − {m_new[0]:.0f}) = {join[0]:.4f}")
print(f"l    = {keep[0]:.4f} + {join[0]:.4f} · {l_tile[0]:.4f} = {l_new[0]:.4f}")

# %% [markdown]
# There is the 1.2034 again. Now O. The old O has been divided by the old l already, and that must
# be undone before anything can be added: this is why `keep` carries the factor l. The tile's p V
# has not been divided yet and only moves to the new maximum.

# %%
old, new = keep[:, None] * o_old, join[:, None] * (p @ v)
O[0:2] = (old + new) / l_new[:, None]
truth, truth_LSE = attention(tiny_Q, tiny_K, tiny_V, scale=1.0)
print(f"old part {old[0].round(4)} + new part {new[0].round(4)}, divided by {l_new[0]:.4f}:")
print("tile by tile", machine.to_host("O")[0].round(4))
print("in one go   ", truth[0].round(4))

# %% [markdown]
# The same numbers, and no row of S was ever whole. At the end LSE = m + ln l goes to HBM, one
# number a query. The backward pass of lesson 04 needs nothing else of the softmax.

# %%
LSE[0:2] = m_new + np.log(l_new)
print(f"LSE = 5 + ln 1.2034 = {machine.to_host('LSE')[0]:.4f}, in one go {truth_LSE[0]:.4f}")

# %% [markdown]
# **Ragged lengths.** N need not be a multiple of the tile: `tiles(5, 2)` ends with a shorter slice,
# and everything above works for it. Nothing is padded.
#
# **Causal.** A query may not see later keys. Some tiles are hidden whole, and those are not even
# visited. Others are cut by the diagonal, and there `mask_scores` sets the hidden scores to −∞.

# %%
MARK = {"skip": "·", "cut": "◣", "full": "■"}


def kind(rows, cols, Nq, Nk):
    """What a causal mask leaves of a tile: "skip", "cut" or "full"."""
    if fully_masked(rows, cols, Nq, Nk):
        return "skip"
    hidden = np.isneginf(mask_scores(np.zeros((rows.stop - rows.start, 1)), rows, cols, Nq, Nk))
    return "cut" if hidden.any() else "full"


for Nq, Nk in ((12, 12), (8, 14), (14, 8)):
    print(f"Nq = {Nq}, Nk = {Nk}, tiles of 2")
    for rows in tiles(Nq, 2):
        print("   ", "".join(MARK[kind(rows, cols, Nq, Nk)] for cols in tiles(Nk, 2)))

# %% [markdown]
# The mask is aligned bottom-right: the last query sees the last key. In the second picture there
# are more keys than queries, as when a conversation goes on. In the third the first queries see
# nothing at all. They get O = 0 and LSE = −∞, and the loop you are given does that for you.
#
# With a mask, queries finish at different times. Their LSE is final after the last tile *they* see.

# %% [markdown]
# ## Exercise
# `flash1_forward(machine, Q, K, V, O, l, m, LSE, *, Br, Bc, scale, causal)`
#
# The loops are there. You write what happens when a tile of queries meets a tile of keys, in five
# steps. With Tc = ⌈Nk/Bc⌉ tiles of keys, each array may cross exactly this often:
#
# | array | read | written |
# |---|---|---|
# | K, V | 1× | |
# | Q | Tc× | |
# | O | (Tc − 1)× | Tc× |
# | l, m | (Tc − 1)× | Tc× (the last time is optional) |
# | LSE | | 1× |
#
# With a causal mask only the visited tiles count. Reading O on the first pass is one read too many,
# and what you would read is NaN.
#
# Three helpers are safe where −∞ or 0 turns up: `shifted_exp(s, m)` is e^(s − m),
# `divide_rows(o, l)` is o / l row by row, `log_sum_exp(m, l)` is m + ln l.

# %% [markdown]
# Here is a first try that treats every tile as if it were the only one. Two invariants hold all
# the same. Why just these two?


# %%
def first_try(machine, Q, K, V, O, l, m, LSE, *, Br, Bc, scale, causal):
    for cols in tiles(K.shape[0], Bc):
        k, v = K[cols], V[cols]
        for rows in tiles(Q.shape[0], Br):
            s = scale * (Q[rows] @ k.T)
            p = np.exp(s - s.max(axis=1, keepdims=True))
            O[rows] = p @ v / p.sum(axis=1, keepdims=True)


Report(grade_function(first_try, "flash1_forward"))

# %% exercise="flash1_forward"
# Your turn. Until all five steps are there, the check says NOT WRITTEN.
from reference_numpy.flash1_forward import flash1_forward  # include

# %% [markdown]
# ## Check
# Stuck? `hint("flash1_forward")` in a new cell gives one hint at a time.

# %% tags=["check"]
check(flash1_forward)

# %% [markdown]
# ## What the hardware says
# First your kernel's meter beside the closed form, on a ragged problem: 1000 queries and keys,
# tiles of 96 and 64 rows. The 4 is the bytes of an fp32.

# %%
kernel = ready("flash1_forward")
N, d, size = 1000, 64, {"Br": 96, "Bc": 64}
machine, arrays = machine_for(*normal(N, d), sram_bytes=192 * 1024)
kernel(machine, *arrays, **size, scale=d**-0.5, causal=False)
form = io_complexity.flash1_forward(Problem(N, N, d, **size))
for name, moved in machine.traffic.arrays.items():
    print(f"{name:<4} read {moved.read:>10,} = 4 · {form[name].read:<9,}", end="")
    print(f" written {moved.written:>10,} = 4 · {form[name].written:<9,}")

# %% [markdown]
# How large should the tiles be? As large as SRAM allows, since every further tile of keys is
# another pass over Q and O. The paper lets four tiles share an SRAM of M elements: Bc = ⌈M/4d⌉
# and Br = min(Bc, d).
#
# Then Tc = 4Nd/M, and a pass moves about 3Nd (Q and O in, O out). Together 12N²d²/M: **twice the
# SRAM, half the traffic.** Measure it.

# %%
N, d = 256, 32
sizes = [1024 * 2**i for i in range(6)]
problems = [Problem(N, N, d, *paper_tile_sizes(M, d)) for M in sizes]
measured = []
for M, p in zip(sizes, problems, strict=True):
    # Half as much room again: Python lets go of an old tile only when the new one is there.
    machine, arrays = machine_for(*normal(N, d), sram_bytes=4 * M * 3 // 2)
    kernel(machine, *arrays, Br=p.Br, Bc=p.Bc, scale=d**-0.5, causal=False)
    measured.append(machine.traffic.total)
    form = 4 * total(io_complexity.flash1_forward(p))
    print(f"M = {M:>6,}  Br = {p.Br:>2}  Bc = {p.Bc:>3}  ", end="")
    print(f"{measured[-1]:>11,} bytes metered, {form:>11,} in closed form")

# %%
naive = 4 * (4 * N * d + 4 * N * N)
M = np.geomspace(sizes[0], sizes[-1], 100)
fig, ax = plt.subplots(figsize=(7.5, 4))
ax.loglog(M, 4 * 12 * N**2 * d**2 / M, color="#56B4E9", label="12 N²d²/M")
ax.loglog(sizes, measured, "o", color="#0072B2", label="FlashAttention-1, metered")
ax.axhline(naive, color="#D55E00", ls="--", label="three kernels: 4Nd + 4N²")
ax.axvline(3 * d * d, color="gray", lw=0.8, ls=":")
ax.text(3.1 * d * d, 1.3 * min(measured), "M = 3d²", color="gray")
ax.set_xlabel("SRAM, M in elements")
ax.set_ylabel("bytes moved")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.legend()
plt.show()

# %% [markdown]
# The points lie on the line until the last ones, where Q, K, V and O themselves, which must cross
# at least once, are no longer small.
#
# Look at the crossing. 12N²d²/M = 4N² gives M = 3d², whatever N is. **With less SRAM than that,
# tiling moves more than the three kernels**, even when those may keep K and V on chip. With more,
# it wins, and N does not matter.

# %%
for d in (64, 128, 256):
    print(f"d = {d:>3}: the crossing is at {2 * 3 * d * d / 1024:>4.0f} KB of fp16")
a100 = DEVICES["A100 80GB"]
print(f"SRAM of one SM of an A100: {a100.sram_bytes_per_sm // 1024} KB")

# %% [markdown]
# So FlashAttention is a good idea because d is small and SRAM is not. At d = 256 these loops would
# lose.
#
# What they buy on an A100, with N = 4096, d = 64, 16 heads and every array in fp16. These are lower
# bounds from bytes and FLOPs; no GPU was asked, and nothing here is a measured time.

# %%
N, d, heads = 4096, 64, 16
p = Problem(N, N, d, *paper_tile_sizes(a100.sram_bytes_per_sm // 2, d))
flops = heads * 4 * N * N * d
ways = {
    "three kernels": io_complexity.three_kernels(p),
    "FlashAttention-1": io_complexity.flash1_forward(p),
}
for name, io in ways.items():
    nbytes = heads * 2 * total(io)
    moving, computing = nbytes / a100.hbm_bytes_per_s, flops / a100.peak_flops
    print(f"{name:<18}{nbytes / 1e6:>6.0f} MB: {1e6 * moving:>5.0f} µs for the bytes,", end="")
    print(f" {1e6 * computing:.0f} µs for the matmuls")

# %% [markdown]
# The three kernels wait for memory. FlashAttention-1 waits for its arithmetic, as a matrix product
# should.

# %% [markdown]
# ## One question to take along
# P is gone: it was never stored. But the backward pass of attention is written with P in almost
# every line. Was it a mistake to throw it away?

# %%
progress()

# %% [markdown]
# ## Sources
# - T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, *FlashAttention* (arXiv 2205.14135): Algorithm 1 for
#   the loops and tile sizes, Theorem 2 for Θ(N²d²/M), Algorithm 0 for the three kernels.
# - M. Milakov, N. Gimelshein, *Online normalizer calculation for softmax* (arXiv 1805.02867).
# - The bottom-right mask is that of the flash-attn package since version 2.1.
