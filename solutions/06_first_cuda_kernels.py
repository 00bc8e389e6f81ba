# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # 06 · First kernels in CUDA
# Part II, CUDA. About 25 minutes. It needs lesson 01 and no GPU: kernels run in a simulator that
# counts what they move and stops at the first bug.

# %%
from contextlib import contextmanager

import matplotlib.pyplot as plt
import numpy as np

from autograder import CudaKernel, check, doctor, grade_function, hint, progress, ready
from autograder.report import Report
from cupy_kernels import NvrtcNotFound, RawKernel, measure
from cupy_kernels.simulator import Fault
from reference_numpy.oracle import attention
from reference_numpy.roofline import DEVICES
from reference_numpy.tiling import cdiv

doctor()

# %% [markdown]
# ## The question
# On the model machine one line, `Q[i:j]`, fetched a tile. A GPU has no such line. It has thousands
# of threads, and each of them asks for one number, 4 bytes.
#
# **A thread asks for 4 bytes. How many bytes move?** Somewhere between 4 and 32, and the thread
# cannot know: it depends on what its neighbours ask for in the same moment.

# %% [markdown]
# ## The picture
# Threads are launched in **blocks**, and the blocks of a launch form the **grid**. The hardware
# runs the threads of a block in **warps** of 32. When a warp executes a load, all its 32 lanes ask
# together: that is one **request**.
#
# Memory answers in **sectors**, pieces of 32 bytes. A request costs every sector that any of its
# lanes touches, whole. Below, 32 lanes read one float each, 1, 2 or 8 floats apart.

# %%
fig, axes = plt.subplots(3, 1, figsize=(8, 2.4), sharex=True)
for ax, stride in zip(axes, (1, 2, 8), strict=True):
    lanes = np.arange(32) * stride
    sectors = np.unique(lanes // 8)
    ax.bar(8 * sectors, 1, width=8, align="edge", color="#9ad0f5", edgecolor="white", lw=0.5)
    ax.bar(lanes, 1, width=1, align="edge", color="#0072B2")
    used = f"{len(sectors)} sectors, {100 * 4 / len(sectors):g} % of the bytes used"
    ax.set_title(f"{stride} apart: {used}", fontsize=9, loc="left", pad=2)
    ax.set_yticks([])
axes[-1].set_xlabel("floats in memory (dark: asked for, light: moved all the same)")
fig.tight_layout()
plt.show()

# %% [markdown]
# All three rows deliver the same 128 bytes. The last one moves 1024 for them. Neighbouring threads
# that take neighbouring elements are called **coalesced**, and they cost 4 sectors a request.

# %% [markdown]
# ## The idea in code
# A kernel is a C function that every thread runs. It finds out who it is from `blockIdx`,
# `blockDim` and `threadIdx`. Here each thread writes down its block and its place in the block, as
# 100 · block + thread.

# %%
WHO = r"""
extern "C" __global__ void who(int* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 100 * blockIdx.x + threadIdx.x;
}
"""


@contextmanager
def compiler():
    """Around new kernels: where there is no compiler the cell says so, and the notebook goes on."""
    try:
        yield
    except NvrtcNotFound as missing:
        print(missing)


with compiler():
    y = np.full(10, -1, np.int32)
    RawKernel(WHO, "who", device="sim")((3,), (4,), (y, 10))  # grid, block, arguments
    print(y)

# %% [markdown]
# Three blocks of 4 threads are 12 threads for 10 elements. Element 5 belongs to thread 1 of
# block 1, since 1 · 4 + 1 = 5. The last two threads find i = 10 and i = 11, and the `if` sends them
# home. Without it they would write behind the end of `y`.
#
# The call is CuPy's: `kernel(grid, block, arguments)`. Without `device="sim"` it runs on the GPU if
# there is one. The source is the same.

# %% [markdown]
# **Requests, counted.** Copy with a stride, and let `measure()` count. Four warps of 32 lanes make
# four requests to read x and four to write y.

# %%
STRIDED = r"""
extern "C" __global__ void strided(const float* x, float* y, int stride) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float value = x[i * stride];
    y[i] = value;
}
"""


def strided(stride):
    """Traffic of 128 threads that read every `stride`-th float."""
    x, y = np.zeros(128 * stride, np.float32), np.zeros(128, np.float32)
    with measure() as traffic:
        RawKernel(STRIDED, "strided", device="sim")((2,), (64,), (x, y, stride))
    return traffic


with compiler():
    print("stride   sectors of x   a request   bytes asked for   bytes moved")
    for stride in (1, 2, 4, 8, 16):
        x = strided(stride).per_array()["x"]
        print(f"{stride:>6}{x.load_sectors:>15}{x.load_sectors / x.load_requests:>12.0f}", end="")
        print(f"{x.load_bytes:>18}{32 * x.load_sectors:>14}")

# %% [markdown]
# From stride 8 on every lane has a sector of its own: 32 a request, an eighth of the bytes used.
# It cannot get worse. The measurement also shows itself, line by line of the source, with the
# sectors as a bar: the line to improve is the one with the long bar.

# %%
with compiler():
    display(strided(8))

# %% [markdown]
# **Shared memory** is the SRAM of a block: `__shared__ float tile[32][32]`. It is not made of
# sectors but of 32 **banks**, 4 bytes wide. Word w lies in bank w mod 32, and each bank answers one
# word at a time. A request where several lanes want different words of one bank takes several
# **wavefronts**. Lanes go down a column here, row after row, for rows of several lengths:

# %%
COLUMN = r"""
extern "C" __global__ void column(float* y, int width) {
    extern __shared__ float tile[];
    tile[threadIdx.x * width] = 1.0f;  // lane t has row t, column 0
    y[threadIdx.x] = tile[threadIdx.x * width];
}
"""

with compiler():
    print("row length   wavefronts a request   banks of the lanes 0, 1, 2, 3")
    for width in (32, 33, 34, 36, 40, 48):
        with measure() as traffic:
            y, dynamic = np.zeros(32, np.float32), 4 * 32 * width
            RawKernel(COLUMN, "column", device="sim")((1,), (32,), (y, width), shared_mem=dynamic)
        times = traffic.totals.shared_wavefronts / traffic.totals.shared_requests
        print(f"{width:>10}{times:>23.0f}   {[t * width % 32 for t in range(4)]}")

# %% [markdown]
# With rows of 32 floats a column is one single bank: 32 wavefronts, one lane at a time. One float
# more in each row and it is 32 banks. That one column of waste is the oldest trick of CUDA, and you
# will need it in a moment.

# %% [markdown]
# **A race.** Threads of a block run in no fixed order. Here each thread puts its number into shared
# memory and takes its neighbour's. Something is missing between the two.

# %%
NEIGHBOUR = r"""
extern "C" __global__ void neighbour(float* y) {
    __shared__ float x[64];
    x[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = x[(threadIdx.x + 1) % 64];
}
"""
y = np.zeros(64, np.float32)
with compiler():
    try:
        RawKernel(NEIGHBOUR, "neighbour", device="sim")((1,), (64,), (y,))
    except Fault as fault:
        print(fault)

# %% [markdown]
# The report names both lines and both threads. On a GPU this kernel may give the right answer for
# years: it depends on which warp runs first. `__syncthreads()` makes every thread of the block wait
# until all have arrived, and then all that was written before it can be read.

# %%
with compiler():
    fixed = NEIGHBOUR.replace("= threadIdx.x;\n", "= threadIdx.x;\n    __syncthreads();\n")
    RawKernel(fixed, "neighbour", device="sim")((1,), (64,), (y,))
    print(y[:4], "...", y[-4:])

# %% [markdown]
# What the simulator knows and what it does not: it runs the PTX that NVIDIA's compiler makes of
# your source, and counts sectors and requests by the rules of a GPU's own counters. It has no
# caches and no clock. It measures work, not time.

# %% [markdown]
# ## Exercise
# Six kernels in small steps; the last three are naive attention. Each is one CUDA source with a
# fixed name and fixed parameters, and its launch: grid and block as arithmetic on the sizes.
#
# The grader compiles, launches in the simulator and checks the numbers against float64. A race, an
# access out of bounds or a read of something never written is FAIL. And it counts sectors, times 32
# bytes. `1×` is every float once, in whole requests of 4 sectors (one or two more where rows are
# ragged and begin in the middle of a sector).

# %% [markdown]
# | kernel | read at most | written at most |
# |---|---|---|
# | `vector_add` | x, y 1× | z 1× |
# | `transpose` | x 1× | y 1×; no bank conflicts |
# | `row_sum` | x 1× | y one sector a row |
# | `naive_scores` | Q d·Nq·⌈Nk/32⌉ sectors, K d·Nq·Nk sectors | S 1× |
# | `naive_softmax` | S 3× | P 1×, LSE one sector a row |
# | `naive_weighted_sum` | P Nq·Nk·⌈d/32⌉ sectors, V Nq× | O 1× |
#
# The sectors of the attention kernels are for one head. At least, every array moves once.

# %% [markdown]
# ### 1. One element a thread
# A first try, with the guard forgotten, and its report. It names the line and the thread.

# %%
FIRST_TRY = r"""
extern "C" __global__ void vector_add(const float* x, const float* y, float* z, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    z[i] = x[i] + y[i];
}
"""
first_try = CudaKernel(FIRST_TRY, grid="cdiv(n, 256)", block="256")
print("\n".join(repr(Report(grade_function(first_try, "cuda_add"))).splitlines()[:8]))

# %% exercise="cuda_add"
# Which element is mine, and is there one?
# include cupy_kernels/vector_add.cu as VECTOR_ADD

cuda_add = CudaKernel(VECTOR_ADD, grid="cdiv(n, 256)", block="256")

# %% tags=["check"]
check(cuda_add, "cuda_add")

# %% [markdown]
# A first run says NOT WRITTEN, and that is as it should be. `hint("cuda_add")` gives one hint at a
# time, and so for every exercise.

# %% [markdown]
# ### 2. A transpose
# Rows of X are contiguous, columns are not. Reading by rows and writing by columns costs 32 sectors
# a request on one side. So turn the tile on the chip: load rows, store rows, and go down the
# columns only in shared memory, where it costs nothing if the banks agree.

# %% exercise="cuda_transpose"
# Four short places. Mind the length of a tile's row, and what must lie between the two loops.
# include cupy_kernels/transpose.cu as TRANSPOSE

cuda_transpose = CudaKernel(TRANSPOSE, grid="cdiv(columns, 32), cdiv(rows, 32)", block="32, 8")

# %% tags=["check"]
check(cuda_transpose, "cuda_transpose")

# %% [markdown]
# ### 3. The sum of a row
# 128 threads and one number at the end. Within a warp no shared memory is needed:
# `__shfl_xor_sync(ALL_LANES, sum, 16)` gives each lane the `sum` of the lane that is 16 away. After
# 16, 8, 4, 2 and 1 every lane holds the sum of all 32. By hand for four lanes with [1, 2, 3, 4]:
# 2 apart gives [4, 6, 4, 6], 1 apart gives [10, 10, 10, 10].

# %% exercise="cuda_row_sum"
# A thread's share, a warp's sum, the block's sum.
# include cupy_kernels/row_sum.cu as ROW_SUM

cuda_row_sum = CudaKernel(ROW_SUM, grid="rows", block="128")

# %% tags=["check"]
check(cuda_row_sum, "cuda_row_sum")

# %% [markdown]
# ### 4. Scores
# Now attention, with batch and heads: arrays are (batch, heads, N, d), and `blockIdx.z` counts
# batch · heads. Query heads may share a head of keys; those lines are written for you. One thread
# computes one score. A causal mask is aligned bottom-right, and a hidden score is stored as −∞.

# %% exercise="cuda_scores"
# Threads that are neighbours in x take neighbouring keys.
# include cupy_kernels/naive_scores.cu as NAIVE_SCORES

cuda_scores = CudaKernel(
    NAIVE_SCORES, grid="cdiv(Nk, 32), cdiv(Nq, 8), batch * heads", block="32, 8"
)

# %% tags=["check"]
check(cuda_scores, "cuda_scores")

# %% [markdown]
# ### 5. Softmax
# One block a row, three passes over it. `block_max` and `block_sum` come from `warp_reduce.cuh`;
# they are your row sum of exercise 3, made into functions.

# %% exercise="cuda_softmax"
# Three loops of the same form, and one store by one thread.
# include cupy_kernels/naive_softmax.cu as NAIVE_SOFTMAX

cuda_softmax = CudaKernel(NAIVE_SOFTMAX, grid="rows", block="128")

# %% tags=["check"]
check(cuda_softmax, "cuda_softmax")

# %% [markdown]
# ### 6. The weighted sum
# O = P V, one element of O a thread.

# %% exercise="cuda_weighted_sum"
# Neighbours in x take neighbouring columns of O.
# include cupy_kernels/naive_weighted_sum.cu as NAIVE_WEIGHTED_SUM

cuda_weighted_sum = CudaKernel(
    NAIVE_WEIGHTED_SUM, grid="cdiv(d, 32), cdiv(Nq, 8), batch * heads", block="32, 8"
)

# %% tags=["check"]
check(cuda_weighted_sum, "cuda_weighted_sum")

# %% [markdown]
# ## Check
# The three together are attention. Two sequences of two heads, 80 queries and keys, causal, against
# float64. Between the kernels S and P lie in HBM, where lesson 01 had them.


# %%
def naive_attention(q, k, v, causal=False):
    """O and LSE by the three kernels in the simulator, and what they moved."""
    batch, heads, N, d = q.shape
    S, P = np.empty((2, batch, heads, N, N), np.float32)
    O, LSE = np.empty_like(q), np.empty((batch, heads, N), np.float32)
    sizes = {"batch": batch, "heads": heads, "kv_heads": heads, "Nq": N, "Nk": N, "d": d}
    rows, scale = {"rows": batch * heads * N}, d**-0.5
    with measure() as traffic:
        values = {"q": q, "k": k, "s": S, "scale": scale, "causal": int(causal), **sizes}
        ready("cuda_scores").launch(values, device="sim")
        ready("cuda_softmax").launch({"s": S, "p": P, "lse": LSE, **sizes, **rows}, device="sim")
        ready("cuda_weighted_sum").launch({"p": P, "v": v, "o": O, **sizes}, device="sim")
    return O, LSE, traffic


def normal(*shape):
    """Q, K and V of standard normal numbers."""
    return np.random.default_rng(0).standard_normal((3, *shape)).astype(np.float32)


# %%
q, k, v = normal(2, 2, 80, 32)
O, LSE, traffic = naive_attention(q, k, v, causal=True)
truth = attention(q, k, v, causal=True)
for name, got, right in zip(("O", "LSE"), (O, LSE), truth, strict=True):
    print(f"{name:<4} differs from float64 by {np.abs(got - right).max():.1e}")

# %% [markdown]
# ## What the hardware says
# **Where do the sectors go?** One head, N = 128, d = 64. Look for the longest bar in each source.

# %%
O, LSE, traffic = naive_attention(*normal(1, 1, 128, 64))
traffic

# %%
arrays = {kernel.kernel: kernel.arrays for kernel in traffic.kernels}
print(f"{'':20}{'':4}{'sectors a request':>19}{'bytes of sectors':>18}{'bytes of the array':>20}")
for kernel, named in arrays.items():
    for name, a in named.items():
        sectors, requests = a.load_sectors + a.store_sectors, a.load_requests + a.store_requests
        print(f"{kernel:<20}{name:<4}{sectors / requests:>19.1f}{32 * sectors:>18,}", end="")
        print(f"{a.size_bytes:>20,}")

# %% [markdown]
# In the course's kernel (yours may differ) K costs 32 sectors a request: the lanes of a warp walk
# down 32 rows side by side. All of K is 32 KB, and 32 MB are moved. P costs one sector for all
# lanes, the cheapest request there is, but only 4 of its 32 bytes are wanted.
#
# A cache catches most of this on a GPU. What no cache can catch is S and P once they outgrow it.

# %% [markdown]
# **N² again.** Lesson 01 counted 4Nd + 4N² elements on the model machine. Here S is written once
# and read three times, for the maximum, the sum and the result: 4N² for S alone. Double N and
# watch.

# %%
lengths, moved = (64, 128, 256, 512), {}
for N in lengths:
    *_, traffic = naive_attention(*normal(1, 1, N, 64))
    a = traffic.per_array()
    moved[N] = {
        "S, read and written": 32 * (a["s"].load_sectors + a["s"].store_sectors),
        "P, written": 32 * a["p"].store_sectors,
        "P, read": 32 * a["p"].load_sectors,
        "K, read": 32 * a["k"].load_sectors,
        "O, written": 32 * a["o"].store_sectors,
    }
print(f"{'bytes':<22}" + "".join(f"{f'N = {N}':>13}" for N in lengths) + "   for twice the N")
for what in moved[64]:
    row = [moved[N][what] for N in lengths]
    print(f"{what:<22}" + "".join(f"{n:>13,}" for n in row) + f"{row[-1] / row[-2]:>14.2f}×")
print(f"{'4N² floats':<22}" + "".join(f"{16 * N * N:>13,}" for N in lengths))

# %%
fig, ax = plt.subplots(figsize=(7, 3.2))
for what, mark in zip(moved[64], "osvD^", strict=True):
    ax.loglog(lengths, [moved[N][what] for N in lengths], mark + "-", label=what)
slopes = {w: np.log2(moved[512][w] / moved[256][w]) for w in moved[64]}
ax.set_xticks(lengths, [str(N) for N in lengths])
ax.minorticks_off()
ax.set_xlabel("N")
ax.set_ylabel("bytes of sectors")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
print("slope: " + ", ".join(f"{what} {slope:.2f}" for what, slope in slopes.items()))

# %% [markdown]
# Slope 2 is N², slope 1 is N. Only O, which is what was asked for, grows with N.
#
# **On a GPU** the same slope shows in Nsight Compute's DRAM counters, `dram__bytes_read.sum` and
# `dram__bytes_write.sum`, as soon as S is larger than the L2 cache. For an H200 with 50 MB that is
# one head of N = 4096 in fp32, 64 MB. `measure()` asks for these counters where there is a GPU. In
# the simulator they read `not measured`, and for this page they were not measured.

# %%
h100, d = DEVICES["H100"], 64
print("one head, fp32, at the H100's bandwidth: lower bounds from bytes, not measured times")
for N in (4096, 8192, 16384):
    floats = {"three kernels": 4 * N * d + 6 * N * N, "Q, K, V, O alone": 4 * N * d}
    times = {name: 4e6 * n / h100.hbm_bytes_per_s for name, n in floats.items()}
    print(f"N = {N:>5}: " + ", ".join(f"{name} {t:>7,.1f} µs" for name, t in times.items()))

# %% [markdown]
# (6N²: the softmax kernel's three reads and one write of N², and N² each for the two products.)

# %% [markdown]
# ## One question to take along
# The eight warps of a block in `naive_scores` have eight queries and the same 32 keys. Each of them
# reads these keys from HBM for itself, 32 sectors a request. Your transpose knows a better way to
# touch a tile. And once K is on the chip, must S ever leave it? (There FlashAttention in CUDA
# begins.)

# %%
progress()

# %% [markdown]
# ## Sources
# - NVIDIA, *CUDA C++ Programming Guide*: grids, blocks, warps; *CUDA C++ Best Practices Guide*:
#   coalesced access to global memory, shared-memory banks.
# - M. Harris, *An efficient matrix transpose in CUDA C/C++* and *Optimizing parallel reduction in
#   CUDA* (NVIDIA): the padded tile, the reduction in steps.
# - T. Dao et al., *FlashAttention* (arXiv 2205.14135), Algorithm 0: attention in three kernels.
# - NVIDIA, *Nsight Compute documentation*: sectors, requests, wavefronts, DRAM counters.
