# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # 00 · The machine
# Part I, NumPy on the model machine. About 20 minutes. You need NumPy and no GPU.

# %%
import matplotlib.pyplot as plt
import numpy as np

from autograder import check, doctor, grade_function, hint, progress, ready
from autograder.report import Report
from lessons.widgets.roofline import Roofline
from reference_numpy.machine import HbmArray, InHbm, Machine, SramOverflow
from reference_numpy.roofline import DEVICES, intensity, least_time
from reference_numpy.tiling import tiles

doctor()

# %% [markdown]
# ## The question
# An A100 can do 312 trillion operations in a second. You ask it to add two arrays of a hundred
# million floats: 0.1 billion additions. How long must that take?
#
# Decide on a number before you run the next cell.

# %%
a100 = DEVICES["A100 80GB"]
additions = 100e6
moved = 3 * 4 * additions  # X and Y come in, Z goes out, 4 bytes a number

print(f"arithmetic: {1e6 * additions / a100.peak_flops:7.1f} µs")
print(f"bytes:      {1e6 * moved / a100.hbm_bytes_per_s:7.1f} µs")

# %% [markdown]
# The additions are done in a third of a microsecond. Fetching the numbers takes 1800 times as
# long, and nothing in the arithmetic can be made clever enough to change that.
#
# And 312 trillion flatters: it is the rate of the tensor cores, which only multiply matrices. For
# plain additions the chip has 108 × 64 lanes, and a lane does one each clock.

# %%
lanes = a100.sms * 64
plain = additions / (lanes * a100.clock_hz)
waiting = moved / a100.hbm_bytes_per_s / plain
print(f"{lanes} lanes: {lanes * a100.clock_hz / 1e12:.1f} trillion additions a second")
print(f"arithmetic: {1e6 * plain:7.1f} µs; the bytes still take {waiting:.0f} times as long")

# %% [markdown]
# So this course asks one question of every kernel, from this page to the last: **how many bytes did
# that move?**

# %% [markdown]
# ## The picture
# A GPU has two memories that matter here. **HBM** is large and outside the chip: all arrays live
# there. **SRAM** is small and sits beside the arithmetic, a piece of it in each streaming
# multiprocessor (SM): only what is there can be computed with.

# %%
print(f"{'':<12}{'HBM':>7}{'TB/s':>9}{'SMs × SRAM':>16}{'in all':>9}{'TB/s':>7}")
for gpu in DEVICES.values():
    hbm = f"{gpu.hbm_bytes / 1e9:4.0f} GB{gpu.hbm_bytes_per_s / 1e12:9.2f}"
    each = f"{gpu.sms} × {gpu.sram_bytes_per_sm // 1024} KB"
    whole = f"{gpu.sram_bytes / 2**20:.0f} MB"
    print(f"{gpu.name:<12}{hbm}{each:>16}{whole:>9}{gpu.sram_bytes_per_s / 1e12:7.1f}")

# %% [markdown]
# Read the A100's rows: 20 MB of SRAM against 40 or 80 GB of HBM, and about ten times as fast. (An
# SM delivers 32 banks of 4 bytes each clock; times 108 SMs and 1.41 GHz that is 19.5 TB/s.)
#
# Newer GPUs have more of everything. The shape of the problem has stayed.

# %% [markdown]
# The **roofline** puts arithmetic and bytes in one picture. A kernel takes at least FLOPs / peak,
# and at least bytes / bandwidth, whichever is longer. Divide its FLOPs by its bytes and you have
# its *intensity*. Left of the ridge the slanted roof is the limit: the kernel is **memory-bound**.
#
# Step through five kernels and change the GPU. One of them is a surprise.
#
# ![Kernels under the roofline of a GPU](../lessons/images/roofline.png)
#
# This picture stands still. Below it is alive.

# %% tags=["widget"]
N, d = 4096, 64
rates = {gpu.name: (gpu.peak_flops, gpu.hbm_bytes_per_s) for gpu in DEVICES.values()}
textbook = [
    ("2·x, fp32", N * N, 8 * N * N),
    ("dot product, fp32", 2 * N * N, 8 * N * N),
    ("matrix · vector, fp16", 2 * N * N, 2 * N * N),
    ("S = Q Kᵀ, d = 64, fp16", 2 * N * N * d, 2 * (N * N + 2 * N * d)),
    ("matmul N = 4096, fp16", 2 * N**3, 2 * 3 * N * N),
]
Roofline(rates, textbook, device="A100 80GB")

# %% [markdown]
# The surprise is `S = Q Kᵀ`. It is a matrix product, yet it lies left of the ridge: with d = 64
# each score costs 128 operations and has to be written out. Every GPU of the table is waiting for
# memory there. That one point is why FlashAttention exists.

# %% [markdown]
# ## The idea in code
# You will not guess bytes, you will meter them. `Machine` is a model of the two memories: an array
# in HBM, an SRAM of a size you choose, and a counter between.

# %%
machine = Machine(sram_bytes=64)
X = machine.hbm("X", np.arange(12, dtype=np.float32).reshape(4, 3))
Y = machine.empty("Y", (4, 3))
X

# %% [markdown]
# **Nothing is computed in HBM.** This is the error you will meet most often:

# %%
try:
    X + 1
except InHbm as error:
    print(error)

# %% [markdown]
# So load a **tile**, a slice of rows. It arrives as a plain NumPy array on the chip, and it is paid
# for: 2 rows · 3 columns · 4 bytes = 24 bytes. Compute with it as you like. Storing pays as well.

# %%
x = X[0:2]
Y[0:2] = x + 1
machine.traffic

# %% [markdown]
# **SRAM is small.** A loaded tile takes up room for as long as a variable holds it. Here `x` still
# has 24 of the 64 bytes, and the next tile wants 48:

# %%
try:
    everything = X[:]
    Y[2:4] = everything[2:4] + 1
except SramOverflow as error:
    print(error)

# %% [markdown]
# The room is free again when the name is gone, or when a loop gives it to the next tile. Only what
# you load is counted, not what you compute from it: the bytes that cross are what we are after.

# %%
del x, everything
for rows in tiles(4, 2):  # slice(0, 2), then slice(2, 4)
    Y[rows] = X[rows] + 1
machine.traffic

# %% [markdown]
# The loop read X once as a whole, 48 bytes. The meter says 120, because it never forgets: 24 for
# `x` and 48 for `everything` were paid before.

# %% [markdown]
# ## Exercise
# Three kernels on arrays of shape (N, n), fp32, B rows on chip at a time. For every row of X:
#
# - `elementwise_add`: Z = X + Y.
# - `softmax_one_kernel`: Y = e^(X − max) / Σ e^(X − max), all of it in one visit to the chip.
# - `softmax_three_kernels`: the same, one step a kernel. The first finds each row's maximum M, the
#   second its denominator L, the third the result. **A kernel starts with an empty chip**, so M
#   and L go to HBM and come back.
#
# ### First predict
# Before you write a kernel, say how many bytes each of them will move, reads and writes together.
# M and L have N numbers each.

# %% exercise="predicted_bytes"
# Name three numbers of elements: add, one and three. The 4 bytes of each are multiplied in below.
from reference_numpy.first_kernels import predicted_bytes  # include

# %% tags=["check"]
check(predicted_bytes)

# %% [markdown]
# A first run says NOT WRITTEN, and that is as it should be. `hint("predicted_bytes")` in a new cell
# gives one hint at a time. A check that never comes back has met a loop without an end: interrupt
# it with the stop button above.
#
# A function of your own that an exercise calls goes into the exercise's cell. In a cell of its own,
# above, it needs the tag `helper` (the gear icon at the right, *Cell Tags*): `check` sees it either
# way, but grading runs only exercise and helper cells.

# %% [markdown]
# ### Then write them
# `rows` is a slice, so `X[rows]` loads a tile of B rows. Each array may cross exactly this often:
#
# | kernel | read | written |
# |---|---|---|
# | add | X 1×, Y 1× | Z 1× |
# | one kernel | X 1× | Y 1× |
# | three kernels | X 3×, M 2×, L 1× | M 1×, L 1×, Y 1× |
#
# More is FAIL. So is less: then a kernel kept something that it cannot have kept.

# %% exercise="elementwise_add"
# One line.
from reference_numpy.first_kernels import elementwise_add  # include

# %% tags=["check"]
check(elementwise_add)

# %% [markdown]
# For the softmax, here is a first try that looks right, and its report. The numbers are wrong on
# one fixture, the bytes on all of them. Say why before you read the likely causes.


# %%
def first_try(machine, X, Y, *, B):
    for rows in tiles(X.shape[0], B):
        Y[rows] = np.exp(X[rows]) / np.exp(X[rows]).sum(axis=1, keepdims=True)


with np.errstate(all="ignore"):
    report = Report(grade_function(first_try, "softmax_one_kernel"))
report

# %% exercise="softmax_one_kernel"
# Each X[rows] is paid for, so how often may it stand here?
from reference_numpy.first_kernels import softmax_one_kernel  # include

# %% tags=["check"]
check(softmax_one_kernel)

# %% exercise="softmax_three_kernels"
# M[rows] arrives with shape (B,); M[rows][:, None] makes it a column.
from reference_numpy.first_kernels import softmax_three_kernels  # include

# %% tags=["check"]
check(softmax_three_kernels)

# %% [markdown]
# ## Check
# Your prediction beside the meter, on arrays it has not seen.

# %%
N, n = 2048, 512
INPUTS = {"elementwise_add": "XYZ", "softmax_one_kernel": "XY", "softmax_three_kernels": "XMLY"}


def metered(name):
    """The machine after one run of a kernel on arrays of shape (N, n)."""
    machine = Machine()
    data = np.random.default_rng(0).standard_normal((N, n)).astype(np.float32)
    arrays = [machine.hbm(a, data[:, 0] if a in "ML" else data) for a in INPUTS[name]]
    ready(name)(machine, *arrays, B=16)
    return machine


# %%
runs = {name: metered(name) for name in INPUTS}
predicted = ready("predicted_bytes")(N, n)
print(f"{'bytes':<24}{'predicted':>14}{'metered':>14}")
for name, machine in runs.items():
    print(f"{name:<24}{predicted[name]:>14,}{machine.traffic.total:>14,}")

# %% [markdown]
# ## What the hardware says
# Where the bytes of the two softmaxes went:

# %%
fig, ax = plt.subplots(figsize=(8, 2.2))
SHADES = {"X": "#0072B2", "M": "#D55E00", "L": "#CC79A7", "Y": "#009E73"}
for y, name in enumerate(("softmax_three_kernels", "softmax_one_kernel")):
    left = 0
    for array, moved in runs[name].traffic.arrays.items():
        size = runs[name].to_host(array).nbytes / 1e6
        for _crossing in range(round(moved.total / 1e6 / size)):
            ax.barh(y, size, left=left, color=SHADES[array], edgecolor="white", linewidth=0.5)
            if size > 1:
                ax.text(left + size / 2, y, array, color="white", ha="center", va="center")
            left += size
ax.set_yticks([0, 1], ["three kernels", "one kernel"])
ax.set_xlabel(f"MB moved for a softmax of {N} × {n} fp32")
plt.show()

# %% [markdown]
# M and L are too thin to see, 0.04 MB together. What costs is that X comes in three times, not
# once. The arithmetic is hardly more, the bytes are twice as many.
#
# Now your kernels under the roof. FLOPs an element: 1 for the add, 5 for the softmax (maximum,
# subtract, exp, sum, divide), 7 when the subtraction and the exp are done twice.

# %% tags=["widget"]
FLOPS = {"elementwise_add": 1, "softmax_one_kernel": 5, "softmax_three_kernels": 7}
points = [(name, FLOPS[name] * N * n, m.traffic.total) for name, m in runs.items()]
Roofline(rates, [*points, textbook[-1]], device="A100 80GB")

# %% [markdown]
# All three sit at the far left, at about one FLOP a byte or less. Their time is their traffic, so
# the least time on each GPU follows from the meter alone. These are lower bounds computed from data
# sheets; no GPU was asked, and nothing here is a measured time.

# %%
print(f"least time in µs    {''.join(f'{gpu:>11}' for gpu in DEVICES)}   FLOP/byte")
for name, flops, nbytes in points:
    times = [f"{1e6 * least_time(flops, nbytes, gpu):11.1f}" for gpu in DEVICES.values()]
    label = name.removesuffix("_kernels").removesuffix("_kernel")
    print(f"{label:<20}{''.join(times)}{intensity(flops, nbytes):12.2f}")

# %% [markdown]
# ## One question to take along
# `softmax_one_kernel` is as good as it gets, but it needs whole rows on the chip. A query that
# looks at 131,072 keys has a row of 131,072 scores.

# %%
row = 131_072 * 4
print(f"one row: {row // 1024} KB; SRAM of one SM: {a100.sram_bytes_per_sm // 1024} KB on an A100")

# %% [markdown]
# The row does not fit. Must we go back to three kernels and read everything three times? Lesson 01
# shows what that costs attention. Lesson 02 has the way out.

# %%
progress()

# %% [markdown]
# ## Sources
# - S. Williams, A. Waterman, D. Patterson, *Roofline: an insightful visual performance model for
#   multicore architectures* (2009).
# - T. Dao et al., *FlashAttention* (arXiv 2205.14135), section 2.1 and figure 1: the memory
#   hierarchy, memory-bound and compute-bound.
# - A. Ivanov et al., *Data movement is all you need* (arXiv 2007.00072): most of a transformer's
#   operators wait for memory.
# - NVIDIA's data sheets of A100, H100, H200 and B200: rates, sizes, and the clock they hold for.
