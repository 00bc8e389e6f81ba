# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # 01 · Three kernels
# Part I, NumPy on the model machine. About 20 minutes. You need lesson 00 and no GPU.

# %%
import matplotlib.pyplot as plt
import numpy as np

from autograder import check, doctor, grade_function, hint, progress, ready
from autograder.report import Report
from lessons.widgets.traffic import TrafficView
from reference_numpy import io_complexity
from reference_numpy.flops import FORWARD_MATMULS, matmul_flops
from reference_numpy.io_complexity import Problem
from reference_numpy.machine import HbmArray, Machine
from reference_numpy.roofline import DEVICES
from reference_numpy.standard_backward import standard_backward
from reference_numpy.tiling import tiles

doctor()

# %% [markdown]
# ## The question
# Attention takes three matrices Q, K, V of shape (N, d) and returns a fourth, O:
#
#     S = Q Kᵀ / √d        P = softmax(S), row by row        O = P V
#
# Four matrices of N·d numbers. In between stand S and P, which are N×N and which nobody asked for.
# How much larger are they, at the sizes that language models use?

# %%
print("one head, fp16       Q, K, V, O together      S alone    S is larger than Q")
for d in (64, 128):
    for N in (1024, 2048, 4096, 8192):
        qkvo, s = 2 * 4 * N * d / 2**20, 2 * N * N / 2**20
        print(f"d = {d:>3}, N = {N:>4}    {qkvo:20.1f} MB {s:10.0f} MB {N // d:14} times")

# %% [markdown]
# S is N/d times as large as Q: 128 times at N = 8192, d = 64. That is for one head; a training step
# has hundreds of them (batch times heads).
#
# If each step is a kernel of its own, S is written, read, turned into P, written, and read again.
# How many bytes is that, exactly?

# %% [markdown]
# ## The picture
# Sixteen queries and keys, d = 4, tiles of four rows, on a chip with 1 KB. Step through the run and
# watch the counters of S and P.
#
# ![The three kernels half-way, beside FlashAttention-2](../lessons/images/traffic_beside.png)
#
# This picture stands still, and has a run of lesson 05 below ours. The live one follows.


# %% tags=["widget"]
def on_machine(N, d, sram_bytes, dtype=np.float32):
    """A machine that holds Q, K, V of shape (N, d), and room for S, P and O."""
    machine = Machine(sram_bytes)
    rng = np.random.default_rng(0)
    arrays = [machine.hbm(x, rng.standard_normal((N, d)).astype(dtype)) for x in "QKV"]
    arrays += [machine.empty(x, (N, N), dtype) for x in "SP"]
    return machine, [*arrays, machine.empty("O", (N, d), dtype)]


picture, arrays = on_machine(16, 4, sram_bytes=1024)
ready("three_kernels")(picture, *arrays, Br=4, Bc=4, scale=0.5)
TrafficView(picture)

# %% [markdown]
# ## The idea in code
# Now N = 4 and d = 2, where a hand can count, and everything fits on the chip at once. Each kernel
# loads what it needs, computes, stores, and leaves: the next one finds the chip empty.
#
# **Kernel 1** reads Q and K and writes S: 2·Nd + N² = 16 + 16 = 32 numbers.

# %%
N, d = 4, 2
machine, (Q, K, V, S, P, O) = on_machine(N, d, sram_bytes=1024)

q, k = Q[:], K[:]
S[:] = q @ k.T / np.sqrt(d)
del q, k  # the kernel ends, its tiles are gone
print(machine.traffic.total // 4, "numbers moved so far")

# %% [markdown]
# **Kernel 2** reads S and writes P: 2·N² = 32 more. **Kernel 3** reads P and V and writes O:
# N² + 2·Nd = 32 more.

# %%
s = S[:]
p = np.exp(s - s.max(axis=1, keepdims=True))
P[:] = p / p.sum(axis=1, keepdims=True)
del s
print(machine.traffic.total // 4, "after softmax")

O[:] = P[:] @ V[:]
print(machine.traffic.total // 4, "after P V; 4Nd + 4N² =", 4 * N * d + 4 * N**2)

# %% [markdown]
# | kernel | reads | writes | sum |
# |---|---|---|---|
# | S = QKᵀ | Q, K | S | 2Nd + N² |
# | P = softmax(S) | S | P | 2N² |
# | O = PV | P, V | O | N² + 2Nd |
# | all three | | | **4Nd + 4N²** |
#
# Only 4Nd of it is the problem itself. The 4N² is S and P going out and coming back.

# %% [markdown]
# ### Why the maximum goes first
# Softmax divides e^s by the sum of all e^s in the row. In fp32, e^89 is already too large to write
# down. One score of 100 and the row is lost:

# %%
row = np.array([0, 100], np.float32)
with np.errstate(all="ignore"):
    print("without:", np.exp(row) / np.exp(row).sum())
e = np.exp(row - row.max())
print("with:   ", e / e.sum())

# %% [markdown]
# Multiply above and below by e^(−m) and nothing changes: e^(s−m) / Σ e^(s−m) is the same softmax
# for any m. With m the row's maximum, the largest term is e^0 = 1 and none can overflow.
#
# It has a price that you will feel in lesson 02: **m is known only when the whole row has been
# seen.** That is why softmax sits in a kernel of its own here.

# %% [markdown]
# ## Exercise
# Write the three kernels for any N, on a chip where S does not fit. Work on tiles: Br rows of
# queries, Bc rows of keys. `S[rows, cols]` is the tile of S where they meet.
#
# `K = K[:] if machine.fits(K) else K` is given. `fits` says whether K takes at most half of SRAM,
# so that tiles have room beside it. If it does, all of K is kept on the chip and `K[cols]` then
# costs nothing. If not, `K[cols]` loads the tile, and you pay again.
#
# | array | read | written |
# |---|---|---|
# | Q | Nq·d | |
# | K, V each | Nk·d if it fits, ⌈Nq/Br⌉·Nk·d if not | |
# | S, P each | Nq·Nk | Nq·Nk |
# | O | | Nq·d |
#
# Times 4 bytes. The grader accepts exactly these, and for K and V that do not fit anything from
# once to ⌈Nq/Br⌉ times.

# %% [markdown]
# The cells above, still without tiles, and with the maximum forgotten, get this report. `rising`
# is a fixture whose scores climb from 0 to 300 along the keys.


# %%
def first_try(machine, Q, K, V, S, P, O, *, Br, Bc, scale):
    S[:] = scale * (Q[:] @ K[:].T)
    p = np.exp(S[:])
    P[:] = p / p.sum(axis=1, keepdims=True)
    O[:] = P[:] @ V[:]


with np.errstate(all="ignore"):
    report = Report(grade_function(first_try, "three_kernels"))
report

# %% [markdown]
# On `normal` it is exact: random scores are small, and small scores forgive. Every other fixture
# takes one excuse away. `small_sram` is `normal` again, on a chip one byte too small for K:
# `fits` says no, so K and V come in tile by tile.

# %% exercise="three_kernels"
# Three kernels, and a function that launches them one after the other. A loop over
# tiles(Q.shape[0], Br) gives `rows`, one over tiles(K.shape[0], Bc) gives `cols`.
from reference_numpy.three_kernels import scores, softmax_rows  # include
from reference_numpy.three_kernels import weighted_sum, three_kernels  # include

# %% [markdown]
# ## Check

# %% tags=["check"]
check(three_kernels)

# %% [markdown]
# ## What the hardware says
# Your kernels on N = 256, d = 64. K and V are 64 KB each and fit in 192 KB of SRAM (a kernel keeps
# at most one of them).

# %%
N, d, B = 256, 64, 32
kernels = ready("three_kernels")


def forward(N, d, B, sram_bytes=192 * 1024):
    """The machine after your three kernels on (N, d), and its arrays."""
    machine, arrays = on_machine(N, d, sram_bytes)
    kernels(machine, *arrays, Br=B, Bc=B, scale=d**-0.5)
    return machine, arrays


machine, (Q, K, V, S, P, O) = forward(N, d, B)
print("metered:   ", machine.traffic.total // 4, "elements")
print("4Nd + 4N²: ", 4 * N * d + 4 * N**2)
machine.traffic

# %% [markdown]
# **When K and V do not fit.** With a chip of 64 KB, each of the Tr = ⌈N/Br⌉ tiles of queries brings
# all of K in again, and later all of V: 2·(Tr − 1)·Nd elements more, to the last byte.

# %%
crowded, _ = forward(N, d, B, sram_bytes=64 * 1024)
Tr = -(-N // B)
closed_form = 4 * N * d + 4 * N**2 + 2 * (Tr - 1) * N * d
print("metered:   ", crowded.traffic.total // 4, "elements")
print("re-read:   ", closed_form, f"with Tr = {Tr}")

# %% [markdown]
# ### The backward pass
# Training needs dQ, dK and dV as well. The standard backward pass is given: five kernels that read
# the stored P and pass dP and dS on through HBM. It is run here after your forward pass, on the
# same machine.

# %%
more = [machine.hbm("dO", np.ones((N, d), np.float32))]
more += [machine.empty(x, (N, N)) for x in ("dP", "dS")]
more += [machine.empty(x, (N, d)) for x in ("dQ", "dK", "dV")]
before = machine.traffic.total // 4
standard_backward(machine, Q, K, V, P, *more, Br=B, Bc=B, scale=d**-0.5)

both = machine.traffic.total // 4
print(f"backward:  {both - before:>7} elements;  7N² +  8Nd = {7 * N**2 + 8 * N * d}")
print(f"with it:   {both:>7} elements; 11N² + 12Nd = {11 * N**2 + 12 * N * d}")

# %% [markdown]
# Eleven trips of an N×N matrix for one training step of one head. Count them in
# `reference_numpy/standard_backward.py`: P is read twice, dP is written and read, dS is written and
# read twice.

# %% [markdown]
# ### What it costs
# Your kernels metered at seven lengths, on the curve 4Nd + 4N². Below it, what cannot be avoided:
# reading Q, K, V and writing O once.

# %%
d, lengths = 64, [32, 64, 96, 128, 192, 256, 384]
measured = [forward(N, d, B)[0].traffic.total for N in lengths]
x = np.geomspace(32, 8192, 100)

fig, ax = plt.subplots(figsize=(8, 4))
ax.loglog(x, 4 * (4 * x * d + 4 * x**2), color="#D55E00", label="4Nd + 4N², three kernels")
ax.loglog(x, 4 * 4 * x * d, color="#0072B2", linestyle="--", label="4Nd, the problem itself")
ax.loglog(lengths, measured, "o", color="black", label="metered")
ax.set_xlabel("N")
ax.set_ylabel("bytes moved, fp32, d = 64")
ax.legend()
plt.show()

# %% [markdown]
# At N = d the upper line stands at twice the lower one. At N = 8192 it has moved 129 times what the
# problem asks for.
#
# And the time? On an A100, one head in fp16, as the roofline of lesson 00 has it:

# %%
a100 = DEVICES["A100 80GB"]
print("least time in µs     arithmetic    bytes    the tensor cores wait")
for N in (1024, 2048, 4096, 8192):
    arithmetic = matmul_flops(N, d, FORWARD_MATMULS) / a100.peak_flops
    moving = 2 * io_complexity.total(io_complexity.three_kernels(Problem(N, N, d, B, B)))
    moving /= a100.hbm_bytes_per_s
    wait = 1 - arithmetic / moving
    print(f"N = {N:>4} {1e6 * arithmetic:22.1f} {1e6 * moving:8.1f} {wait:18.0%} of the time")

# %% [markdown]
# The arithmetic would be done in a fifth of the time. Nothing was measured here, as there is no GPU
# in this lesson: these are lower bounds from a data sheet. Lesson 06 runs the same three kernels in
# CUDA and finds the N² again.

# %% [markdown]
# ## One question to take along
# S is written only to be read once more, and so is P. Suppose a kernel kept each tile of S on the
# chip and took its softmax there, before the next tile of keys arrives.
#
# Which maximum would it subtract, and by which sum would it divide?

# %%
progress()

# %% [markdown]
# ## Sources
# - T. Dao et al., *FlashAttention* (arXiv 2205.14135), section 2.2 and Algorithm 0: standard
#   attention. Algorithm 3: its backward pass.
