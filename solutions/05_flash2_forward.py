# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # 05 · FlashAttention-2's loops
# Part I, NumPy on the model machine. About 25 minutes. It needs lessons 03 and 04.

# %%
import matplotlib.pyplot as plt
import numpy as np

from autograder import check, doctor, grade_function, hint, progress, ready
from autograder.report import Report
from lessons.widgets.traffic import TrafficView
from reference_numpy import flops, io_complexity
from reference_numpy.flop_counter import CountingMachine
from reference_numpy.io_complexity import Problem, total
from reference_numpy.machine import HbmArray, Machine
from reference_numpy.online_softmax import divide_rows, log_sum_exp, shifted_exp
from reference_numpy.oracle import attention
from reference_numpy.roofline import DEVICES
from reference_numpy.tiling import cdiv, fully_masked, mask_scores, tiles

doctor()

# %% [markdown]
# ## The question
# FlashAttention-1 keeps K and V on chip and lets the queries pass by. So O travels to HBM and back
# once for every tile of keys, and is divided by l each time, only to be multiplied by it again.
#
# Nothing in the mathematics asks for that. **What if the queries stayed and the keys passed by?**

# %% [markdown]
# ## The picture
# ![The three kernels and FlashAttention-2, half-way](../lessons/images/traffic_beside.png)
#
# The still shows FlashAttention-2 beside lesson 01's three kernels. Here it runs beside
# FlashAttention-1: N = 64, d = 16, tiles of 16 rows. Watch O in both.


# %%
def machine_for(Q, K, V, *, version, sram_bytes=192 * 1024, kind=Machine):
    """A machine with Q, K, V and O in HBM, and the row statistics that a version needs."""
    machine = kind(sram_bytes=sram_bytes)
    arrays = [machine.hbm(name, x) for name, x in zip("QKV", (Q, K, V), strict=True)]
    arrays.append(machine.empty("O", Q.shape))
    names = ("l", "m", "LSE") if version == 1 else ("LSE",)
    return machine, arrays + [machine.empty(name, (len(Q),)) for name in names]


def normal(N, d, seed=0):
    """Q, K and V of standard normal numbers, each (N, d)."""
    return np.random.default_rng(seed).standard_normal((3, N, d)).astype(np.float32)


# %% tags=["widget"]
runs = {}
for version in (1, 2):
    machine, arrays = machine_for(*normal(64, 16), version=version, sram_bytes=9 * 1024)
    ready(f"flash{version}_forward")(machine, *arrays, Br=16, Bc=16, scale=0.25, causal=False)
    runs[f"FlashAttention-{version}"] = machine
TrafficView(runs)

# %% [markdown]
# FlashAttention-2 stores O once for each tile of queries and never reads it. There is no l and no m
# in HBM either: they live as long as their queries are on chip.

# %% [markdown]
# ## The idea in code
# Lesson 03's example again: query 0 with the scores [1, 3] and then [2, 5], tiles of two keys. What
# stays on chip for it is m, l and o, and o is Σ e^(s − m)·v: **not divided yet**.

# %%
s_tiles = np.array([[1, 3], [2, 5]], np.float32)
V = np.array([[[1, 0], [0, 1]], [[1, 1], [2, 0]]], np.float32)
m, l, o = -np.inf, 0.0, np.zeros(2)
for s, v in zip(s_tiles, V, strict=True):
    m_new = max(m, s.max())
    p, rescale = np.exp(s - m_new), np.exp(m - m_new)
    l, o, m = rescale * l + p.sum(), rescale * o + p @ v, m_new
    print(f"s = {s}: rescale = {rescale:.4f}, m = {m:.0f}, l = {l:.4f}, o = {o.round(4)}")
print(f"O = o / l = {(o / l).round(4)}")

# %% [markdown]
# By hand: after the first tile o = 0.1353·[1, 0] + 1·[0, 1] = [0.1353, 1]. The second tile brings
# m = 5, so l and o both shrink by e^(3 − 5) = 0.1353, and 0.0498·[1, 1] + 1·[2, 0] is added.
#
# The answer is lesson 03's, [1.7185, 0.1538]. The one factor `rescale` does what `keep`, `join` and
# the division did there. And starting from m = −∞ the first rescale is e^(−∞) = 0: no special case.

# %% [markdown]
# **Who can work at the same time?** Tiles of queries need nothing of one another any more, so each
# can have a streaming multiprocessor of its own. FlashAttention-1 gives one to each head of each
# sequence, and with few long sequences most of the GPU stands still. For 128-row tiles:


# %%
def busy(blocks, sms):
    """The part of all SMs' time that is used, when each takes one block at a time."""
    return blocks / (cdiv(blocks, sms) * sms)


sms = [DEVICES[name].sms for name in ("A100 80GB", "H100")]
print(f"{'':21}   {'blocks':^16}   {f'busy on {sms[0]} SMs':^16}   {f'on {sms[1]} SMs':^12}")
print(f"{'batch':>5}{'heads':>7}{'N':>9}", end="")
print(f"   {'FA1':>8}{'FA2':>8}   {'FA1':>8}{'FA2':>8}   {'FA1':>6}{'FA2':>6}")
for batch, heads, N in ((64, 16, 1024), (8, 16, 8192), (2, 16, 32768), (1, 16, 131072)):
    one, two = batch * heads, batch * heads * cdiv(N, 128)
    a100, h100 = ([f"{busy(blocks, n):.0%}" for blocks in (one, two)] for n in sms)
    print(f"{batch:>5}{heads:>7}{N:>9,}   {one:>8,}{two:>8,}   ", end="")
    print(f"{a100[0]:>8}{a100[1]:>8}   {h100[0]:>6}{h100[1]:>6}")

# %% [markdown]
# Long contexts come with small batches, so the last rows are the ones that matter. There 16 heads
# keep 16 SMs busy, and version 1 leaves the rest of the chip idle.

# %% [markdown]
# ## Exercise
# `flash2_forward(machine, Q, K, V, O, LSE, *, Br, Bc, scale, causal)`
#
# The outer loop is there. With Tr = ⌈Nq/Br⌉ tiles of queries, each array may cross exactly this
# often:
#
# | array | read | written |
# |---|---|---|
# | Q | 1× | |
# | K, V | Tr× | |
# | O, LSE | | 1× |
#
# With a causal mask only the visited tiles of keys count. In this order they come first, and all
# that follow are hidden: you can stop at the first hidden one.

# %% [markdown]
# A first try forgets what lesson 02 was about: it adds up exponentials without a maximum. On most
# data that works. The report's first lines:


# %%
def first_try(machine, Q, K, V, O, LSE, *, Br, Bc, scale, causal):
    for rows in tiles(Q.shape[0], Br):
        q, o, l = Q[rows], 0, 0
        for cols in tiles(K.shape[0], Bc):
            p = np.exp(scale * (q @ K[cols].T))
            o, l = o + p @ V[cols], l + p.sum(axis=1)
        O[rows], LSE[rows] = o / l[:, None], np.log(l)


with np.errstate(all="ignore"):
    report = Report(grade_function(first_try, "flash2_forward"))
print("\n".join(repr(report).splitlines()[:9]))

# %% exercise="flash2_forward"
# Your turn. o, l and m stay on chip until every visible key has passed.
from reference_numpy.flash2_forward import flash2_forward  # include

# %% [markdown]
# ### Inside one block: who gets what?
# Four warps of a block share each tile, and what one warp has another can see only through shared
# memory. Again there are two ways, and again one of them passes half-done results around.
#
# - **Split K**, as version 1: a warp keeps its share of the keys and values in registers for the
#   whole inner loop. For each tile of queries it reads all of Q, and finds an m, l and o for every
#   query that know only its own keys. Every warp writes these to shared memory. All of them are
#   read once more and joined, by lesson 02's `merge`.
# - **Split Q**, as version 2: a warp keeps its share of the queries in registers. For each tile of
#   keys it reads all of K and V. Its rows of o are its own, and nothing is exchanged.
#
# How many elements cross shared memory, read and written, for one tile?

# %% exercise="shared_memory_elements"
# Count for one tile of Br queries and Bc keys. What stays in registers costs nothing.
from reference_numpy.warp_split import shared_memory_elements  # include

# %% [markdown]
# ## Check
# `hint("flash2_forward")` and `hint("shared_memory_elements")` give one hint at a time.

# %% tags=["check"]
check(flash2_forward)

# %% tags=["check"]
check(shared_memory_elements)

# %% [markdown]
# ## What the hardware says
# **HBM.** The whole traffic is Q + O + LSE + ⌈N/Br⌉·(K + V). To the byte, ragged or not:

# %%
kernel = ready("flash2_forward")
print(f"{'N':>5}{'d':>5}{'Br':>4}{'metered':>14}{'Q+O+LSE+⌈N/Br⌉(K+V)':>22}{'O written':>11}")
for N, d, Br in ((97, 40, 32), (256, 64, 64), (1000, 64, 96), (1000, 128, 128)):
    machine, arrays = machine_for(*normal(N, d), version=2)
    kernel(machine, *arrays, Br=Br, Bc=64, scale=d**-0.5, causal=False)
    form = 4 * (N * d + N * d + N + cdiv(N, Br) * 2 * N * d)
    times = machine.traffic["O"].written / (4 * N * d)
    print(f"{N:>5}{d:>5}{Br:>4}{machine.traffic.total:>14,}{form:>22,}{times:>10.0f}×")

# %% [markdown]
# Is that less than version 1? Per tile of keys that one moved Q in, O in and O out. Per tile of
# queries this one moves K and V in. So **with square tiles two thirds**, and of the repeated
# traffic none is written. Only Br matters now: larger tiles of queries, fewer passes over K and V.

# %%
N, d = 4096, 64
versions = io_complexity.flash1_forward, io_complexity.flash2_forward
print(f"{'Br × Bc':>9}{'version 1':>12}{'version 2':>12}   MB for N = 4096, d = 64 in fp16")
for Br, Bc in ((64, 64), (128, 128), (64, 384), (384, 64)):
    one, two = (2 * total(form(Problem(N, N, d, Br, Bc))) / 1e6 for form in versions)
    print(f"{Br:>4} × {Bc:<3}{one:>11.1f}{two:>12.1f}")

# %% [markdown]
# Version 1 wants wide tiles, version 2 tall ones; each in its own shape, it is two thirds again.
# But 384 rows are out of reach: on a GPU o lives in registers, Br×d numbers of fp32, and 128 rows
# are usual. So bytes are not where version 2 wins. It wins because the tiles of queries run side by
# side, and by the next count.

# %% [markdown]
# **Operations that are no matmul.** An A100 does 312 TFLOP/s in matmuls and at most 19.5 in
# everything else: each exponential, rescaling or division costs at least as much as 16 FLOPs of a
# matmul. So count them. Tiles from a `CountingMachine` take down every operation that NumPy
# performs on them.

# %%
N, d, Br, Bc = 256, 64, 64, 64
p = Problem(N, N, d, Br, Bc)
forms = flops.flash1_elementwise(p), flops.flash2_elementwise(p)
for version, form in zip((1, 2), forms, strict=True):
    machine, arrays = machine_for(*normal(N, d), version=version, kind=CountingMachine)
    run = ready(f"flash{version}_forward")
    run(machine, *arrays, Br=Br, Bc=Bc, scale=d**-0.5, causal=False)
    kinds = ", ".join(f"{name} {n:,}" for name, n in machine.flops.elementwise.most_common())
    print(f"version {version}: {machine.flops.non_matmul:,} counted, {form:,} for the course's own")
    print(f"   {kinds}")

# %% [markdown]
# A score costs 5 operations in either version: scale, maximum, shift, exp, sum. The difference is
# O. Version 1 spends 4 on each of its elements for every tile (two rescalings, an addition, a
# division), version 2 spends 2, and one division at the very end. (Your own code may count a little
# differently.) As time on an A100, for long sequences:

# %%
N = 8192
matmul = flops.matmul_flops(N, d, flops.FORWARD_MATMULS) / 312e12
print(f"N = {N:,}, d = {d}, one head: the matmuls take {1e6 * matmul:.0f} µs on the whole chip")
for Bc in (64, 128):
    p = Problem(N, N, d, 128, Bc)
    one, two = (f(p) / 19.5e12 for f in (flops.flash1_elementwise, flops.flash2_elementwise))
    shares = f"{one / matmul:.0%} and {two / matmul:.0%} of that"
    print(f"Bc = {Bc:>3}: the rest takes {1e6 * one:.0f} and {1e6 * two:.0f} µs, {shares}")

# %% [markdown]
# (This flatters both. 19.5 counts a multiply-add as two operations, so alone they run at half of
# it, and an exponential takes longer than either. A later lesson is about what it really takes.)

# %% [markdown]
# **Shared memory.** Your closed form for a tile of 64 queries and keys, d = 64, in fp16. (A later
# lesson measures it.)

# %%
elements = ready("shared_memory_elements")
for warps in (2, 4, 8):
    k, q = elements(64, 64, 64, warps).values()
    sizes = f"split K {2 * k / 1024:>4.0f} KB, split Q {2 * q / 1024:>4.0f} KB"
    print(f"{warps} warps: {sizes} a tile, {k / q:.2f} times as much")

# %% [markdown]
# The ratio is about 3/2 whatever the number of warps: one Q in, one o out, one o in, against one K
# and one V in. And the exchange needs a barrier, where all warps wait for the slowest.

# %% [markdown]
# **Causal.** Hidden tiles are not visited, so they cost neither bytes nor arithmetic. How many are
# there?

# %%
lengths = [2**i for i in range(8, 15)]
skipped = {}
for B in (64, 128):
    plain = [Problem(N, N, d, B, B).key_visits for N in lengths]
    masked = [Problem(N, N, d, B, B, causal=True).key_visits for N in lengths]
    skipped[B] = [1 - some / every for some, every in zip(masked, plain, strict=True)]

fig, ax = plt.subplots(figsize=(7, 2.6))
for B, mark in ((64, "o"), (128, "s")):
    ax.semilogx(lengths, skipped[B], mark + "-", label=f"{B} × {B}")
ax.axhline(0.5, color="gray", lw=0.8, ls=":")
ax.set_xticks(lengths, [f"{N:,}" for N in lengths])
ax.minorticks_off()
ax.set_xlabel("N")
ax.set_ylabel("tiles skipped")
ax.legend()
plt.show()

# %%
N = 1024
moved = []
for causal in (False, True):
    machine, arrays = machine_for(*normal(N, d), version=2)
    kernel(machine, *arrays, Br=64, Bc=64, scale=d**-0.5, causal=causal)
    moved.append(machine.traffic["K"].read)
print(f"K at N = {N}: {moved[0]:,} bytes, causal {moved[1]:,}: {1 - moved[1] / moved[0]:.1%} less")
print(f"in closed form with T tiles, (T − 1) / 2T = {(16 - 1) / (2 * 16):.1%}")

# %% [markdown]
# **And its backward?** That one keeps K and V in the outer loop: it is the kernel you wrote in
# lesson 04. Swapped, dQ would be written once, but then dK *and* dV would have to collect in HBM.
# Count N×d arrays, with T tiles either way. D takes O and dO once in both orders, 2.
#
# - K, V outside: K, V, dK, dV once, 4; Q, dO for every tile, 2T; dQ in and out, 2T − 1.
# - Q outside: Q, dO, dQ once, 3; K, V for every tile, 2T; dK, dV in and out, 2(2T − 1).

# %%
N, B = 1024, 64
T = N // B
print(f"K, V outside: 4T + 5 = {4 * T + 5},  Q outside: 6T + 3 = {6 * T + 3}")

# %%
machine = Machine()
Q, K, V, dO = np.random.default_rng(2).standard_normal((4, N, 64)).astype(np.float32)
O, LSE = attention(Q, K, V)
hbm = {"Q": Q, "K": K, "V": V, "O": O, "dO": dO, "LSE": LSE}
arrays = [machine.hbm(name, x.astype(np.float32)) for name, x in hbm.items()]
arrays += [machine.empty("D", (N,)), *(machine.empty(f"d{name}", (N, 64)) for name in "QKV")]
ready("flash_backward")(machine, *arrays, Br=B, Bc=B, scale=0.125, causal=False)
print(f"metered, K, V outside: {machine.traffic.total / (4 * N * 64):.1f}")

# %% [markdown]
# The odd half is LSE and D, 1/d of an array each for every tile. Four arrays a pass against six, so
# the backward keeps K and V outside. On the GPU the tiles of keys then run side
# by side, each with its own dK and dV, and dQ collects by atomic additions.
#
# No GPU was asked on this page: bytes and operations are counted, times are lower bounds from data
# sheets. Later lessons measure.

# %% [markdown]
# ## One question to take along
# A causal tile of queries at the end of the sequence has many tiles of keys to visit, one at the
# start has one. Every tile has an SM of its own. When is the kernel finished? (A later lesson comes
# back to this.)

# %%
progress()

# %% [markdown]
# ## Sources
# - T. Dao, *FlashAttention-2* (arXiv 2307.08691): section 3.1 and Algorithm 1 (one division, the
#   loops), section 3.1 on fewer FLOPs outside matmuls and on causal tiles, section 3.2
#   (parallel over the sequence), section 3.3 (split Q, not K), Algorithm 2 (backward).
# - NVIDIA, *A100 data sheet*: 312 TFLOP/s in fp16 tensor cores, 19.5 in fp32.
# - M. Rabe, C. Staats, *Self-attention does not need O(n²) memory* (arXiv 2112.05682): queries
#   outside, division last, before it was about bytes.
