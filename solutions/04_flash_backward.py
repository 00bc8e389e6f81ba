# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # 04 · The backward pass by recomputation
# Part I, NumPy on the model machine. About 25 minutes. It needs lesson 03, and the chain rule.

# %%
import matplotlib.pyplot as plt
import numpy as np

from autograder import check, doctor, grade_function, hint, progress, ready
from autograder.exactness import GRADIENT_FACTOR, Budget
from autograder.report import Report
from lessons.widgets.traffic import TrafficView
from reference_numpy import flops, io_complexity
from reference_numpy.flash1_forward import paper_tile_sizes
from reference_numpy.io_complexity import Problem
from reference_numpy.machine import HbmArray, Machine
from reference_numpy.online_softmax import shifted_exp
from reference_numpy.oracle import (
    EPS_FP32,
    attention,
    attention_gradients,
    gradient_floors,
    naive_backward,
)
from reference_numpy.roofline import DEVICES
from reference_numpy.standard_backward import standard_backward
from reference_numpy.tiling import fully_masked, mask_scores, tiles

doctor()

# %% [markdown]
# ## The question
# The forward pass of lesson 03 threw P away. The standard backward pass has P in almost every line,
# so it keeps the P of every head until then. For one layer that is:

# %%
batch, heads, N = 8, 16, 8192
print(f"P: {batch * heads * N * N * 2 / 1e9:.1f} GB in fp16, kept until the backward pass")

# %% [markdown]
# There is another way: compute P a second time, tile by tile, when it is needed. That is more
# arithmetic. **Can doing more work be faster?**

# %% [markdown]
# ## The picture
# Both ways on the same problem, N = 48, d = 16, tiles of 16 rows. The standard backward is five
# kernels that hand P, dP and dS to one another through HBM. The other is the one you will write.
#
# ![The standard backward and the recomputing one, half-way](../lessons/images/traffic_backward.png)
#
# This picture stands still. The live one follows.


# %%
def machine_for(Q, K, V, dO, *, sram_bytes, causal=False):
    """A machine with the forward pass's arrays in HBM, and room for every gradient."""
    machine = Machine(sram_bytes=sram_bytes)
    O, LSE = attention(Q, K, V, causal=causal)
    hbm = {"Q": Q, "K": K, "V": V, "O": O, "dO": dO, "LSE": LSE}
    arrays = [machine.hbm(name, x.astype(np.float32)) for name, x in hbm.items()]
    arrays.append(machine.empty("D", LSE.shape))
    arrays += [machine.empty(f"d{name}", x.shape) for name, x in zip("QKV", (Q, K, V), strict=True)]
    return machine, arrays


# %%
def standard_machine_for(Q, K, V, dO, *, sram_bytes):
    """The same for the standard backward, with the P that its forward pass stored."""
    machine = Machine(sram_bytes=sram_bytes)
    S = Q.astype(np.float64) @ K.T * Q.shape[1] ** -0.5
    P = np.exp(S - attention(Q, K, V)[1][:, None])
    hbm = {"Q": Q, "K": K, "V": V, "P": P, "dO": dO}
    arrays = [machine.hbm(name, x.astype(np.float32)) for name, x in hbm.items()]
    arrays += [machine.empty(name, S.shape) for name in ("dP", "dS")]
    arrays += [machine.empty(f"d{name}", x.shape) for name, x in zip("QKV", (Q, K, V), strict=True)]
    return machine, arrays


def normal(N, d, seed=0):
    """Q, K, V and dO of standard normal numbers, each (N, d)."""
    return np.random.default_rng(seed).standard_normal((4, N, d)).astype(np.float32)


# %% tags=["widget"]
data, size = normal(48, 16), {"Br": 16, "Bc": 16, "scale": 0.25}
standard, arrays = standard_machine_for(*data, sram_bytes=10 * 1024)
standard_backward(standard, *arrays, **size)
flash, arrays = machine_for(*data, sram_bytes=10 * 1024)
ready("flash_backward")(flash, *arrays, **size, causal=False)
TrafficView({"standard backward": standard, "recomputing backward": flash})

# %% [markdown]
# ## The idea in code
# One query, two keys, d = 1: every number can be checked by hand. With q = 1, keys 0 and ln 3 and
# scale = 1 the scores are 0 and ln 3, so P = [1/4, 3/4]. The values are 0 and 4, so O = 3.
#
# Everything after this layer tells us one thing: dO, how the loss changes with O. Let it be 1.

# %%
q, k, v, dO = np.array([[1.0]]), np.array([[0.0], [np.log(3)]]), np.array([[0.0], [4.0]]), 1.0
S = q @ k.T
LSE = np.log(np.exp(S).sum())
P = np.exp(S - LSE)
O = P @ v
print(f"S = {S.round(4)}, LSE = ln 4 = {LSE:.4f}, P = {P}, O = {O}")

# %% [markdown]
# **P comes back from one number a row.** The line above is no softmax: no maximum, no sum, no
# division. With LSE = m + ln l from the forward pass, e^(S − LSE) *is* P. So all that the backward
# pass needs of the softmax is one number a query.

# %% [markdown]
# **Step 1, back through O = P V.** O = P₀V₀ + P₁V₁. A value counts by its weight, a weight counts
# by its value:
#
# dV = Pᵀ dO  and  dP = dO Vᵀ

# %%
dV, dP = P.T * dO, dO * v.T
print(f"dV = {dV.ravel()}, dP = {dP.ravel()}")

# %% [markdown]
# **Step 2, back through the softmax.** Raising one score raises its own weight and takes from all
# others: ∂Pⱼ/∂Sₖ = Pⱼ(1 if j = k, else 0) − PⱼPₖ. Summed over j against dP:
#
# dSₖ = Pₖ (dPₖ − Σⱼ PⱼdPⱼ)
#
# In words: a score is worth raising if its value is better than the average value. The average is
# the sum, and here it is ¼·0 + ¾·4 = 3. The row of dS must sum to 0, since P keeps summing to 1.

# %%
average = (P * dP).sum()
dS = P * (dP - average)
print(f"rowsum(P∘dP) = {average:.0f}, dS = {dS.ravel()}")

# %% [markdown]
# **Step 3, the sum without the row.** Σⱼ PⱼdPⱼ runs over a whole row, and we only ever have a tile.
# But write dPⱼ = dO·Vⱼ into it:
#
# Σⱼ Pⱼ (dO·Vⱼ) = dO · Σⱼ PⱼVⱼ = dO · O
#
# So D = rowsum(dO∘O): d multiplications a query, no keys at all. It can be computed before anything
# else. Here: 1 · 3 = 3. On random data:

# %%
rng = np.random.default_rng(0)
Q4, K4, V4, dO4 = rng.standard_normal((4, 4, 2))  # N = 4, d = 2, scale = 1
O4, LSE4 = attention(Q4, K4, V4, scale=1.0)
P4 = np.exp(Q4 @ K4.T - LSE4[:, None])
print("rowsum(P∘dP) ", (P4 * (dO4 @ V4.T)).sum(axis=1))
print("rowsum(dO∘O) ", (dO4 * O4).sum(axis=1))

# %% [markdown]
# **Step 4, back through S = scale · Q Kᵀ.** Each score is a product, so each factor gets the other,
# and the scale comes along:
#
# dQ = scale · dS K  and  dK = scale · dSᵀ Q

# %%
dq, dk = dS @ k, dS.T @ q
print(f"dq = ¾ · ln 3 = {dq.item():.4f}, dk = {dk.ravel()}")

# %% [markdown]
# **Do not believe it, measure it.** Nudge one number by h both ways and see how the loss
# L = sum(O∘dO) moves: (L(x + h) − L(x − h)) / 2h. No calculus in it, so no mistake of ours either.


# %%
def central_differences(Q, K, V, dO, h=1e-5, **shape):
    """dQ, dK, dV by nudging every entry of Q, K and V, in float64."""
    inputs = [x.astype(np.float64) for x in (Q, K, V)]
    grads = [np.zeros_like(x) for x in inputs]
    for x, grad in zip(inputs, grads, strict=True):
        for at in np.ndindex(x.shape):
            kept, losses = x[at], []
            for x[at] in (kept + h, kept - h):
                losses.append((attention(*inputs, **shape)[0] * dO).sum())
            x[at], grad[at] = kept, (losses[0] - losses[1]) / (2 * h)
    return grads


measured = central_differences(q, k, v, np.array([[dO]]), scale=1.0)
print("dq, dk, dV:", *(grad.ravel().round(4) for grad in measured))

# %% [markdown]
# And the formulas on the random 4×2 case, all 24 entries:

# %%
dS4 = P4 * (dO4 @ V4.T - (dO4 * O4).sum(axis=1)[:, None])
formulas = {"dQ": dS4 @ K4, "dK": dS4.T @ Q4, "dV": P4.T @ dO4}
nudged = central_differences(Q4, K4, V4, dO4, scale=1.0)
for (name, formula), nudge in zip(formulas.items(), nudged, strict=True):
    print(f"{name}: largest difference {np.abs(formula - nudge).max():.0e}")

# %% [markdown]
# **Tile by tile.** All four formulas are sums over keys or over queries, so tiles simply add up.
# With a tile of keys on chip and the queries passing by, dK and dV of that tile are complete when
# the inner loop ends. dQ is not: every tile of keys adds to it, so it collects in HBM.

# %% [markdown]
# ## Exercise
# `flash_backward(machine, Q, K, V, O, dO, LSE, D, dQ, dK, dV, *, Br, Bc, scale, causal)`
#
# The loops are there, four places are yours. With Tc = ⌈Nk/Bc⌉ tiles of keys:
#
# | array | read | written |
# |---|---|---|
# | K, V | 1× | |
# | Q, LSE | Tc× | |
# | O | 1×, for D | |
# | dO | 1× for D, then Tc× | |
# | D | Tc× | 1× |
# | dQ | (Tc − 1)× | Tc× |
# | dK, dV | | 1× |
#
# On the first pass dQ holds NaN: nothing to read. Gradients may be off by three times the error of
# the standard backward in the same precision, plus what rounding S alone explains.

# %% [markdown]
# A first try that computes dV and leaves the rest for later. The report goes on for each fixture;
# these are its first lines.


# %%
def first_try(machine, Q, K, V, O, dO, LSE, D, dQ, dK, dV, *, Br, Bc, scale, causal):
    for cols in tiles(K.shape[0], Bc):
        dv = 0
        for rows in tiles(Q.shape[0], Br):
            p = np.exp(scale * (Q[rows] @ K[cols].T) - LSE[rows][:, None])
            dv = dv + p.T @ dO[rows]
        dV[cols] = dv


with np.errstate(all="ignore"):
    report = Report(grade_function(first_try, "flash_backward"))
print("\n".join(repr(report).splitlines()[:9]))

# %% exercise="flash_backward"
# Your turn. dk and dv are zeros on chip when a tile of keys begins; add to them.
from reference_numpy.flash_backward import flash_backward  # include

# %% [markdown]
# ## Check
# `hint("flash_backward")` gives one hint at a time.

# %% tags=["check"]
check(flash_backward)

# %% [markdown]
# ## What the hardware says
# Exactness first, on 41 queries and 57 keys, ragged and causal: beside the float64 oracle, and
# beside central differences, which know nothing of our formulas.

# %%
kernel = ready("flash_backward")
rng = np.random.default_rng(1)
Q, dO = rng.standard_normal((2, 41, 8)).astype(np.float32)
K, V = rng.standard_normal((2, 57, 8)).astype(np.float32)
machine, arrays = machine_for(Q, K, V, dO, sram_bytes=64 * 1024, causal=True)
kernel(machine, *arrays, Br=16, Bc=16, scale=8**-0.5, causal=True)

truth = attention_gradients(Q, K, V, dO, causal=True)
naive = naive_backward(Q, K, V, dO, causal=True)
floors = gradient_floors(Q, K, V, dO, causal=True, eps=EPS_FP32)
nudged = central_differences(Q, K, V, dO, causal=True)
print(f"{'':<4}{'to the oracle':>15}{'to differences':>16}{'allowed':>10}")
for name, nudge in zip(("dQ", "dK", "dV"), nudged, strict=True):
    of = [getattr(x, name) for x in (truth, naive, floors)]
    budget = Budget.of(of[0], of[1], factor=GRADIENT_FACTOR, floor=of[2])
    error, other = (np.abs(machine.to_host(name) - x).max() for x in (of[0], nudge))
    print(f"{name:<4}{error:>15.1e}{other:>16.1e}{budget.allowed:>10.1e}")

# %% [markdown]
# Now the paper's own setting, the table beside its figure 2: forward and backward of GPT-2 medium's
# attention, N = 1024, d = 64, 16 heads, batch 64, fp16, on an A100. First the arithmetic, matmuls
# only:

# %%
N, d, heads = 1024, 64, 16 * 64
standard = flops.FORWARD_MATMULS + flops.STANDARD_BACKWARD_MATMULS
recomputing = flops.FORWARD_MATMULS + flops.FLASH_BACKWARD_MATMULS
work = {n: heads * flops.matmul_flops(N, d, n) / 1e9 for n in (standard, recomputing)}
print(f"standard:    {standard} matmuls, {work[standard]:.0f} GFLOP")
print(f"recomputing: {recomputing} matmuls, {work[recomputing]:.0f} GFLOP")
print(f"ratio {recomputing / standard:.3f}; the paper: 75.2 / 66.6 = {75.2 / 66.6:.3f}")

# %% [markdown]
# More work, as promised: seven matmuls instead of six. The paper's ratio, +13 %, is close. Its
# figures themselves, 66.6 and 75.2 GFLOPs, do not follow from its setting: six products of
# 1024 × 1024 × 64 for 1024 heads are 825 GFLOP by any count. We quote the ratio and leave the rest
# alone.
#
# Now the bytes. Both passes get the paper's tiles for 192 KB of SRAM. Is a running O, or a running
# dQ, kept in fp16 or fp32 between passes? The paper does not say, so here are all three answers.

# %%
p = Problem(N, N, d, *paper_tile_sizes(192 * 1024 // 2, d))
STATISTICS = dict.fromkeys(("l", "m", "LSE", "D"), 4)


def gigabytes(*passes, **widths):
    """GB moved by some passes over all heads; 2 bytes an element unless `widths` says other."""
    width = STATISTICS | widths
    moved = [(name, x.read + x.written) for io in passes for name, x in io.items()]
    return heads * sum(width.get(name, 2) * n for name, n in moved) / 1e9


three = io_complexity.three_kernels(p), io_complexity.standard_backward(p)
flash = io_complexity.flash1_forward(p), io_complexity.flash_backward(p)
usual = gigabytes(*three)
answers = {"O, dQ fp32": {"O": 4, "dQ": 4}, "dQ fp32": {"dQ": 4}, "all fp16": {}}
print(f"Br = {p.Br}, Bc = {p.Bc};  standard, 11N² + 12Nd: {usual:.1f} GB")
for answer, widths in answers.items():
    nbytes = gigabytes(*flash, **widths)
    print(f"flash, {answer:<11} {nbytes:>5.2f} GB, {usual / nbytes:.1f} times less")
print(f"the paper: 40.3 GB and 4.4 GB, {40.3 / 4.4:.1f} times less")

# %% [markdown]
# **Five to seven times fewer bytes**, 5.8 with the middle answer. Its 4.4 GB is the paper's figure
# (which is pleasant, and no proof). The standard pass is where we differ: ours has no mask and no
# dropout, which as kernels of their own move N×N arrays too. How many passes over one N×N array of
# all heads are that?

# %%
one_pass = heads * N * N * 2 / 1e9
print(f"ours {usual / one_pass:.1f} passes, the paper's {40.3 / one_pass:.1f}")

# %% [markdown]
# Seven passes more. One account that fits (ours, not the paper's): a mask kernel reads and writes
# S, 2; dropout reads and writes P in the forward and dP in the backward pass, 4; its mask, a byte
# each, is written once and read once, 1.
#
# A caveat on our side. Bc = 384 is Algorithm 4's choice, but K, V, dK and dV alone then fill the
# SRAM. Kernels that have to fit take 128 or less, and move more:

# %%
small = Problem(N, N, d, 128, 128)
small_flash = io_complexity.flash1_forward(small), io_complexity.flash_backward(small)
nbytes = gigabytes(*small_flash, dQ=4)
print(f"Br = Bc = 128: {nbytes:.1f} GB, {usual / nbytes:.1f} times less than standard")

# %% [markdown]
# Our model is strict there: it has no L2 cache. In a real GPU one head's Q, 128 KB here, stays in
# an L2 of 40 MB between passes, and HBM sees little of the re-reading.
#
# Where the bytes go, with Algorithm 4's tiles:

# %%
fig, ax = plt.subplots(figsize=(8, 2.4))
SHADE = {"S": "#D55E00", "P": "#E69F00", "dP": "#CC79A7", "dS": "#F0E442"}
for y, passes, widths in ((1, three, {}), (0, flash, {"dQ": 4})):
    names = [name for io in passes for name in io]
    parts = {n: gigabytes(*({n: io[n]} for io in passes if n in io), **widths) for n in names}
    rest = sum(part for name, part in parts.items() if name not in SHADE)
    shown = [(n, part, SHADE[n]) for n, part in parts.items() if n in SHADE]
    left = 0
    for name, part, shade in [*shown, ("N×d", rest, "#0072B2")]:
        ax.barh(y, part, left=left, color=shade, edgecolor="white")
        if part > 2:
            dark = name in ("S", "N×d")
            ax.text(left + part / 2, y, name, color="w" if dark else "k", ha="center", va="center")
        left += part
ax.set_yticks([0, 1], ["recomputing", "standard"])
ax.set_xlabel("GB moved, forward and backward (N = 1024, d = 64, 1024 heads, fp16)")
plt.show()

# %% [markdown]
# So: a sixth more arithmetic, about a sixth of the bytes. Which counts? On an A100, as lower
# bounds:

# %%
a100 = DEVICES["A100 40GB"]
for name, n, nbytes in (
    ("standard", standard, usual),
    ("recomputing", recomputing, gigabytes(*flash, dQ=4)),
):
    moving, computing = 1e12 * nbytes / a100.hbm_bytes_per_s, 1e12 * work[n] / a100.peak_flops
    print(f"{name:<12} {moving:>5.1f} ms for the bytes, {computing:.1f} ms for the matmuls")

# %% [markdown]
# The extra matmul takes half a millisecond and saves thirteen. **Recomputing is faster, because
# arithmetic is what the chip has to spare.**
#
# The paper measured 41.7 ms and 7.3 ms. We measured nothing: no GPU was asked here.

# %% [markdown]
# ## One question to take along
# Look at the table of traffic once more: dQ comes and goes once for every tile of keys, as O did in
# lesson 03. There, would it help to swap the two loops? And here?

# %%
progress()

# %% [markdown]
# ## Sources
# - T. Dao et al., *FlashAttention* (arXiv 2205.14135): Algorithm 3 (standard backward), Algorithm 4
#   (recomputation), appendix B.2 for the derivation and D, and the table beside figure 2.
# - T. Dao, *FlashAttention-2* (arXiv 2307.08691): Algorithm 2, with the LSE in place of l and m.
# - T. Chen, B. Xu, C. Zhang, C. Guestrin, *Training deep nets with sublinear memory cost* (arXiv
#   1604.06174): recomputing to save memory, here also faster.
