"""Wrong CUDA kernels: races, unguarded ends, wrong indices and masks, small grids, dear accesses."""

from tests.mutants.mutant import Mutant


def _wrong(exercise: str, name: str, old: str, new: str, fixture: str, cause: str = "") -> Mutant:
    return Mutant(name, exercise, {old: new}, fixture, cause=cause)


def _dear(exercise: str, name: str, changes: dict[str, str], array: str) -> Mutant:
    return Mutant(name, exercise, changes, "normal", array=array)


_BARRIER = "    __syncthreads();"
_RACE = "a __syncthreads (within one warp: a __syncwarp) is missing"
_GUARD = "an index is not guarded"
_GRID = "never stored"

WRONG_RESULTS = [
    # Index arithmetic and ragged ends.
    _wrong("cuda_add", "unguarded_tail", "if (i < n) ", "", "ragged", _GUARD),
    _wrong("cuda_add", "grid_too_small", "cdiv(n, 256)", "max(n // 256, 1)", "ragged", _GRID),
    _wrong(
        "cuda_add", "blocks_overlap", "blockIdx.x * blockDim.x", "blockIdx.x * 128", "normal", ""
    ),
    _wrong("cuda_add", "guard_off_by_one", "i < n", "i <= n", "ragged", _GUARD),
    _wrong("cuda_add", "guard_leaves_one", "i < n", "i < n - 1", "normal", _GRID),
    _wrong("cuda_add", "subtracts", "x[i] + y[i]", "x[i] - y[i]", "normal", "y is subtracted"),
    # Shared memory and barriers.
    _wrong("cuda_transpose", "no_barrier", _BARRIER, "    //", "normal", _RACE),
    _wrong(
        "cuda_transpose",
        "copies",
        "y[row * rows + column] = tile[threadIdx.x][r]",
        "y[row * rows + column] = tile[r][threadIdx.x]",
        "normal",
        "not turned inside",
    ),
    _wrong(
        "cuda_transpose",
        "tile_not_moved",
        "const int row = left + r, column = top + threadIdx.x;",
        "const int row = top + r, column = left + threadIdx.x;",
        "normal",
    ),
    _wrong(
        "cuda_transpose", "unmasked_load", "if (row < rows && column < columns) ", "", "numbered"
    ),
    _wrong(
        "cuda_transpose", "unmasked_store", "if (row < columns && column < rows) ", "", "numbered"
    ),
    _wrong(
        "cuda_transpose",
        "barrier_in_a_branch",
        _BARRIER,
        "    if (threadIdx.y < 4) __syncthreads();",
        "normal",
        "barrier",
    ),
    _wrong("cuda_row_sum", "no_barrier", _BARRIER, "    //", "normal", _RACE),
    _wrong(
        "cuda_row_sum", "no_step", "j += blockDim.x", "j += n", "normal", "step on by blockDim.x"
    ),
    _wrong("cuda_row_sum", "overwrites", "sum += x[j]", "sum = x[j]", "normal", "use +="),
    _wrong("cuda_row_sum", "four_exchanges", "apart > 0", "apart > 1", "normal"),
    _wrong(
        "cuda_row_sum",
        "no_shuffles",
        "sum += __shfl_xor_sync(ALL_LANES, sum, apart);",
        "",
        "normal",
        "the shuffles are missing",
    ),
    _wrong(
        "cuda_row_sum",
        "one_warp_only",
        "for (int w = 0; w < warps; ++w)",
        "for (int w = 0; w < 1; ++w)",
        "normal",
        "only the first warp's share",
    ),
    _wrong(
        "cuda_row_sum",
        "one_warp_too_many",
        "for (int w = 0; w < warps; ++w)",
        "for (int w = 0; w <= warps; ++w)",
        "normal",
    ),
    _wrong(
        "cuda_row_sum",
        "shuffle_in_a_branch",
        "        sum += __shfl_xor_sync",
        "        if (lane < 16) sum += __shfl_xor_sync",
        "normal",
    ),
    # Attention.
    _wrong(
        "cuda_scores", "no_scale", "? scale * score", "? score", "normal", "not multiplied by scale"
    ),
    _wrong("cuda_scores", "scale_twice", "? scale *", "? scale * scale *", "normal", "scale twice"),
    _wrong(
        "cuda_scores",
        "causal_off_by_one",
        "j <= i + Nk",
        "j < i + Nk",
        "causal",
        "hides the diagonal",
    ),
    _wrong("cuda_scores", "causal_top_left", "j <= i + Nk - Nq", "j <= i", "causal", "top-left"),
    _wrong("cuda_scores", "no_mask", "!causal || ", "true || ", "causal", "mask is not applied"),
    _wrong("cuda_scores", "masked_scores_are_0", ": -INFINITY", ": 0.0f", "causal", "0, not −∞"),
    _wrong(
        "cuda_scores",
        "masked_scores_not_stored",
        "    s[query_row",
        "    if (visible) s[query_row",
        "causal",
        _GRID,
    ),
    _wrong("cuda_scores", "last_column_missing", "c < d", "c < d - 1", "normal", "last column"),
    _wrong("cuda_scores", "key_rows_of_d", "query_row * Nk + j", "query_row * Nq + j", "numbered"),
    _wrong("cuda_scores", "queries_unguarded", "i >= Nq || ", "", "ragged"),
    _wrong("cuda_scores", "keys_unguarded", " || j >= Nk", "", "ragged"),
    _wrong(
        "cuda_scores",
        "own_keys_for_every_head",
        "kv_heads + kv_head) * Nk",
        "heads + head) * Nk",
        "ragged",
        _GUARD,
    ),
    _wrong("cuda_scores", "grid_too_small", "cdiv(Nq, 8)", "Nq // 8", "ragged", _GRID),
    _wrong(
        "cuda_scores", "one_head_missing", "batch * heads", "batch * heads - 1", "numbered", _GRID
    ),
    _wrong(
        "cuda_softmax",
        "no_max",
        "m = block_max(m, per_warp);",
        "m = 0.0f;",
        "rising",
        "maximum is not subtracted",
    ),
    _wrong(
        "cuda_softmax",
        "m_starts_at_0",
        "float m = -INFINITY",
        "float m = 0.0f",
        "deep_negative",
        "m starts at 0",
    ),
    _wrong(
        "cuda_softmax", "each_thread_its_own_max", "    m = block_max(m, per_warp);\n", "", "normal"
    ),
    _wrong("cuda_softmax", "not_divided", "* inverse", "", "normal", "not divided by l"),
    _wrong(
        "cuda_softmax",
        "masked_rows_are_nan",
        "m == -INFINITY ? 0.0f : m",
        "m",
        "masked_rows",
        "gives NaN",
    ),
    _wrong(
        "cuda_softmax",
        "unguarded_division",
        "l > 0.0f ? 1.0f / l : 0.0f",
        "1.0f / l",
        "masked_rows",
        "gives NaN",
    ),
    _wrong(
        "cuda_softmax",
        "one_step_of_the_row",
        "p[j] = expf(s[j] - shift) * inverse",
        "if (j < 128) p[j] = expf(s[j] - shift) * inverse",
        "ragged",
        _GRID,
    ),
    _wrong("cuda_softmax", "LSE_is_m", "m + logf(l)", "m", "normal", "only m is stored"),
    _wrong("cuda_softmax", "LSE_base_2", "m + logf(l)", "m + log2f(l)", "normal", "base 2"),
    _wrong(
        "cuda_softmax",
        "LSE_missing",
        "if (threadIdx.x == 0) lse[row]",
        "if (threadIdx.x == 999) lse[row]",
        "normal",
        "nothing of lse",
    ),
    _wrong(
        "cuda_softmax",
        "row_missing",
        "const long long row = blockIdx.x;",
        "const long long row = blockIdx.x; if (row == 18) return;",
        "one_hot",
        _GRID,
    ),
    _wrong(
        "cuda_weighted_sum",
        "transposed_index",
        "p[query_row * Nk + j]",
        "p[((long long)blockIdx.z * Nq + j) * Nk + i]",
        "permutation",
        "exchanged",
    ),
    _wrong("cuda_weighted_sum", "last_key_missing", "j < Nk;", "j < Nk - 1;", "normal", "last key"),
    _wrong(
        "cuda_weighted_sum", "first_key_missing", "int j = 0;", "int j = 1;", "normal", "first key"
    ),
    _wrong("cuda_weighted_sum", "columns_unguarded", " || c >= d", "", "ragged"),
    _wrong("cuda_weighted_sum", "grid_for_d_64", "cdiv(d, 32)", "d // 32", "ragged", _GRID),
    _wrong(
        "cuda_weighted_sum",
        "values_of_the_first_head",
        "kv_heads + kv_head) * Nk",
        "kv_heads) * Nk",
        "permutation",
    ),
]

_ROWS_OF_THREADS = {
    "blockIdx.x * blockDim.x + threadIdx.x;  // key": "blockIdx.x * 32 + threadIdx.y * 4 + threadIdx.x / 8;  // key",
    "blockIdx.y * blockDim.y + threadIdx.y;  // query": "blockIdx.y * 8 + threadIdx.x % 8;  // query",
}

WRONG_TRAFFIC = [
    _dear(
        "cuda_add",
        "strided",
        {"blockIdx.x * blockDim.x + threadIdx.x": "threadIdx.x * gridDim.x + blockIdx.x"},
        "x",
    ),
    _dear(
        "cuda_add",
        "reads_twice",
        {
            "const int i": "float twice = 0;\n    const int i",
            "if (i < n) z[i] = x[i] + y[i]": "if (i < n) { twice = *(volatile const float*)&x[i]; z[i] = twice + y[i] + 0 * *(volatile const float*)&x[i]; }",
        },
        "x",
    ),
    _dear("cuda_transpose", "bank_conflicts", {"TILE + 1": "TILE"}, "shared"),
    _dear(
        "cuda_transpose",
        "no_tile",
        {
            "tile[r][threadIdx.x] = x[row * columns + column]": "y[column * rows + row] = x[row * columns + column]",
            "if (row < columns && column < rows) y[row * rows + column] = tile[threadIdx.x][r];": "tile[0][0] = 0 * (row + column);",
        },
        "y",
    ),
    _dear(
        "cuda_row_sum",
        "a_chunk_for_each_thread",
        {
            "for (int j = threadIdx.x; j < n; j += blockDim.x) sum": "const int chunk = (n + blockDim.x - 1) / blockDim.x;\n    for (int j = threadIdx.x * chunk; j < min(n, ((int)threadIdx.x + 1) * chunk); ++j) sum"
        },
        "x",
    ),
    _dear("cuda_row_sum", "every_warp_stores", {"if (threadIdx.x == 0)": "if (lane == 0)"}, "y"),
    _dear("cuda_scores", "scores_stored_column_by_column", _ROWS_OF_THREADS, "s"),
    _dear(
        "cuda_softmax",
        "S_read_four_times",
        {
            "    float l = 0.0f;\n": "    float l = 0.0f;\n    for (int j = threadIdx.x; j < Nk; j += blockDim.x) l += 0.0f * expf(s[j] - shift);\n"
        },
        "s",
    ),
    _dear(
        "cuda_softmax",
        "P_written_before_it_is_divided",
        {"l += expf(s[j] - shift);": "{ p[j] = expf(s[j] - shift); l += p[j]; }"},
        "p",
    ),
    _dear(
        "cuda_softmax",
        "every_thread_stores_the_LSE",
        {"if (threadIdx.x == 0) lse": "if (threadIdx.x % 32 == 0) lse"},
        "lse",
    ),
    _dear(
        "cuda_weighted_sum",
        "O_collected_in_HBM",
        {"        sum += p": "        o[query_row * d + c] = sum += p"},
        "o",
    ),
]
