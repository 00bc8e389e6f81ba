// FlashAttention-2, backward (arXiv 2307.08691, Algorithm 2) on tensor cores: dK and dV of one tile
// of keys a block, dQ added up in HBM.
//
// A block owns Bc = 16 M · WARPS keys and walks along the tiles of Br queries that see them, of
// every query head that shares them. It computes the transposed scores Sᵀ = K Qᵀ, 16 M keys a warp:
// Pᵀ and dSᵀ leave the tensor cores exactly as the A operands of dV += Pᵀ dO and dK += dSᵀ Q. Only
// dQ = dS K needs all keys of the block at once: dSᵀ goes through shared memory for it.
//
// Shared memory is what this kernel waits for. With M = 2 every fragment of Q and dO feeds two
// products; the accumulators leave room for that up to d = 64.
//
//   grid  (⌈Nk / Bc⌉, batch · kv_heads, d / D),
//         causal (kv heads of a section, ⌈Nk / Bc⌉, sections · d / D)      block (32 · WARPS)
//   shared memory  K, V [Bc][d]   Q, dO [2 stages][Br][d]   dSᵀ [Bc][Br]   LSE, D [2 stages][Br]
//
// D is the number of columns of dQ, dK, dV that a block computes: the accumulators of d = 256 do
// not fit in the registers at once.

#include "online_softmax.cuh"
#include "query_gradients.cuh"
#include "swizzled_tile.cuh"

// Sᵀ = K Qᵀ or dPᵀ = V dOᵀ: 16 M rows of the first, from `row` on, by all rows of the second.
template <typename T, int d, int M, int N>
__device__ __forceinline__ void multiply_transposed(float (&C)[M][N][4], uint32_t A, int row,
                                                    uint32_t B) {
    A = down_first<d>(A, row, 0), B = right_first<d>(B, 0, 0);
#pragma unroll
    for (int k = 0; k < d; k += 16) {
        uint32_t a[M][4], b[4];
#pragma unroll
        for (int t = 0; t < M; ++t) ldmatrix_x4(a[t], moved<d>(A, 16 * t, k));
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            ldmatrix_x4(b, moved<d>(B, 8 * n, k));
#pragma unroll
            for (int t = 0; t < M; ++t) {
                mma_m16n8k16<T>(C[t][n], a[t], b[0], b[1]);
                mma_m16n8k16<T>(C[t][n + 1], a[t], b[2], b[3]);
            }
        }
    }
}

// dV += Pᵀ dO or dK += dSᵀ Q, from column `column` of the second on; the first comes from
// registers.
template <typename T, int d, int COLUMNS, int M, int N>
__device__ __forceinline__ void add_product(float (&C)[M][COLUMNS][4], const float (&A)[M][N][4],
                                            uint32_t B, int column) {
    B = down_first<d>(B, 0, column);
#pragma unroll
    for (int k = 0; k < N / 2; ++k) {
        uint32_t a[M][4], b[4];
#pragma unroll
        for (int t = 0; t < M; ++t) pack_a<T>(a[t], A[t], k);
#pragma unroll
        for (int n = 0; n < COLUMNS; n += 2) {
            ldmatrix_x4_trans(b, moved<d>(B, 16 * k, 8 * n));
#pragma unroll
            for (int t = 0; t < M; ++t) {
                mma_m16n8k16<T>(C[t][n], a[t], b[0], b[1]);
                mma_m16n8k16<T>(C[t][n + 1], a[t], b[2], b[3]);
            }
        }
    }
}

// Sᵀ → Pᵀ = e^(scale · Sᵀ − LSE). LSE comes times log2 e, and +∞ for rows that are not there or see
// no key: their P is 0.
template <int M, int N>
__device__ __forceinline__ void probabilities(float (&S)[M][N][4], const float* lse,
                                              float scale_log2) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const float2 row = *reinterpret_cast<const float2*>(lse + 8 * n + threadIdx.x % 4 * 2);
#pragma unroll
        for (int t = 0; t < M; ++t) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                S[t][n][i] = exp2_approx(S[t][n][i] * scale_log2 - (i % 2 ? row.y : row.x));
            }
        }
    }
}

// P = 0 where a key lies behind the last one that the query sees, or behind the last one there is.
// All counted from the warp's first key: the tile's first query sees `last_visible`, there are
// `keys`.
template <int M, int N>
__device__ __forceinline__ void mask_probabilities(float (&P)[M][N][4], int last_visible,
                                                   int keys) {
    const int lane = reread_thread_index() % 32;
#pragma unroll
    for (int t = 0; t < M; ++t) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int key = 16 * t + 8 * r + lane / 4;
            // The first query that sees the key, less this lane's share of the column: one number
            // to compare constants with.
            const int from = key < keys ? key - last_visible - lane % 4 * 2 : 8 * N;
#pragma unroll
            for (int n = 0; n < N; ++n) {
                if (8 * n < from) P[t][n][2 * r] = 0.0f;
                if (8 * n + 1 < from) P[t][n][2 * r + 1] = 0.0f;
            }
        }
    }
}

// dPᵀ → dSᵀ = Pᵀ ∘ (dPᵀ − D).
template <int M, int N>
__device__ __forceinline__ void score_gradients(float (&dP)[M][N][4], const float (&P)[M][N][4],
                                                const float* D) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const float2 row = *reinterpret_cast<const float2*>(D + 8 * n + threadIdx.x % 4 * 2);
#pragma unroll
        for (int t = 0; t < M; ++t) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                dP[t][n][i] = P[t][n][i] * (dP[t][n][i] - (i % 2 ? row.y : row.x));
            }
        }
    }
}

// 16 M rows of an accumulator, times `factor`, into the rows of a swizzled tile.
template <typename T, int d, int M, int N>
__device__ __forceinline__ void store_accumulator(unsigned char* tile, int row,
                                                  const float (&C)[M][N][4], float factor) {
    const int pair = swizzle<d>(row + lane_id() / 4, 0) + lane_id() % 4 * 4;
#pragma unroll
    for (int t = 0; t < M; ++t) {
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const float* c = &C[t][n][2 * r];
                *reinterpret_cast<uint32_t*>(tile + moved<d>(pair, 16 * t + 8 * r, 8 * n)) =
                    pack<T>(c[0] * factor, c[1] * factor);
            }
        }
    }
}

// `rows` rows of such a tile to HBM, 16 bytes a lane.
template <typename T, int d, int D, int rows>
__device__ __forceinline__ void store_rows(T* to, const unsigned char* tile, int row,
                                           long long first, int left) {
    constexpr int CHUNKS = D / 8;
#pragma unroll
    for (int start = 0; start < rows * CHUNKS; start += 32) {
        const int r = row + (start + lane_id()) / CHUNKS, chunk = (start + lane_id()) % CHUNKS;
        if (r >= left) continue;
        const uint4 data = *reinterpret_cast<const uint4*>(tile + swizzle<D>(r, chunk));
        *reinterpret_cast<uint4*>(to + (first + r) * d + chunk * 8) = data;
    }
}

// dQ += dS K for a tile of queries, its [Br][D] shared out among the warps. dQ lies in HBM in the
// order of the accumulators, so that each atomic instruction of a warp covers 128 bytes in a row.
template <typename T, int d, int D, int Br, int Bc, int WARPS>
__device__ __forceinline__ void add_query_gradients(float* dq, uint32_t dS, uint32_t K,
                                                    int column) {
    using Share = QueryGradients<D, Br, WARPS>;
    constexpr int M = Share::M, N = Share::N;
    dS = right_first<Br>(dS, 0, Share::row()), K = down_first<d>(K, 0, column + Share::column());
    float C[M][N][4] = {};
#pragma unroll
    for (int k = 0; k < Bc; k += 16) {
        uint32_t a[M][4], b[4];
#pragma unroll
        for (int t = 0; t < M; ++t) ldmatrix_x4_trans(a[t], moved<Br>(dS, k, 16 * t));
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            ldmatrix_x4_trans(b, moved<d>(K, k, 8 * n));
#pragma unroll
            for (int t = 0; t < M; ++t) {
                mma_m16n8k16<T>(C[t][n], a[t], b[0], b[1]);
                mma_m16n8k16<T>(C[t][n + 1], a[t], b[2], b[3]);
            }
        }
    }
    dq += Share::start();
#pragma unroll
    for (int t = 0; t < M; ++t)
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) atomicAdd(dq + Share::offset(t, n, i), C[t][n][i]);
}

template <typename T, int d, int D, int Br, int M, int WARPS, int BLOCKS, bool causal>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) flash2_backward(
    const T* __restrict__ q,   // [batch, heads, Nq, d]
    const T* __restrict__ k,   // [batch, kv_heads, Nk, d]
    const T* __restrict__ v,   // [batch, kv_heads, Nk, d]
    const T* __restrict__ dO,  // [batch, heads, Nq, d]
    const float* __restrict__ row_values,  // [batch, heads, row tiles, 2, Br]: LSE · log2 e, D
    float* __restrict__ dq_sums,  // [batch, heads, row tiles, d / D, Br · D], accumulator order
    T* __restrict__ dk,           // [batch, kv_heads, Nk, d]
    T* __restrict__ dv,           // [batch, kv_heads, Nk, d]
    int group, int Nq, int Nk, float scale) {  // group = heads / kv_heads
    constexpr int THREADS = WARPS * 32, Bc = 16 * M * WARPS, N = Br / 8;
    constexpr int KV_BYTES = Bc * d * 2, Q_BYTES = Br * d * 2, DS_BYTES = Bc * Br * 2;
    extern __shared__ __align__(128) unsigned char shared[];
    const uint32_t K = __cvta_generic_to_shared(shared), V = K + KV_BYTES;
    const uint32_t Q = V + KV_BYTES, DO = Q + 2 * Q_BYTES, DS = DO + 2 * Q_BYTES;
    const uint32_t ROWS = DS + DS_BYTES;  // [stage][LSE, D][Br] floats
    const float* staged_values = reinterpret_cast<float*>(shared + (ROWS - K));

    // ---- Which keys are mine ------------------------------------------------------------------
    // Causal: the first keys are seen by the most queries; they go first, of a section of heads.
    constexpr int SLICES = d / D;
    const int slice = blockIdx.z % SLICES, section = blockIdx.z / SLICES;
    const int key_tile = causal ? blockIdx.y : blockIdx.x;
    const int kv_head = causal ? section * gridDim.x + blockIdx.x : blockIdx.y;  // of all batches
    const int first_key = key_tile * Bc;        // of the block
    const int key = threadIdx.x / 32 * 16 * M;  // of the warp, counted from there
    const int column = slice * D, first_head = kv_head * group;

    // ---- Which queries see them: all, or from row key − (Nk − Nq) on, in each head of the group -
    const int row_tiles = (Nq + Br - 1) / Br;
    const int first_tile = causal ? max(0, first_key - (Nk - Nq)) / Br : 0;
    const int last_head = first_tile < row_tiles ? first_head + group : first_head;

    auto load_step = [&](int head, int tile, int stage) {  // Q, dO [Br][d] and LSE, D [Br]
        const int row = head * Nq + tile * Br, left = Nq - tile * Br;
        load_tile<Br, d, THREADS>(Q + stage * Q_BYTES, q, row, left);
        load_tile<Br, d, THREADS>(DO + stage * Q_BYTES, dO, row, left);
        const int chunk = reread_thread_index();  // of 4 floats
        if (chunk < Br / 2) {
            const float* values = row_values + ((long long)head * row_tiles + tile) * 2 * Br;
            cp_async_16(ROWS + stage * 8 * Br + chunk * 16, values + chunk * 4, true);
        }
    };

    // ---- Prologue: K, V [Bc][d] and the first tile of queries -----------------------------------
    const int key_row = kv_head * Nk + first_key;
    load_tile<Bc, d, THREADS>(K, k, key_row, Nk - first_key);
    load_tile<Bc, d, THREADS>(V, v, key_row, Nk - first_key);
    if (first_head < last_head) load_step(first_head, first_tile, 0);
    cp_async_commit();
    float dK[M][D / 8][4] = {}, dV[M][D / 8][4] = {};

    int head = first_head, tile = first_tile, stage = 0;
    while (head < last_head) {
        // ---- This tile has landed; every warp has left the other stage and dSᵀ -----------------
        const bool is_last_tile = tile + 1 == row_tiles;
        const int next_head = head + is_last_tile, next_tile = is_last_tile ? first_tile : tile + 1;
        cp_async_wait<0>();
        __syncthreads();
        if (next_head < last_head) load_step(next_head, next_tile, stage ^ 1);
        cp_async_commit();
        const uint32_t Qi = Q + stage * Q_BYTES, dOi = DO + stage * Q_BYTES;
        const float *lse = staged_values + stage * 2 * Br, *dots = lse + Br;

        // ---- Pᵀ [16 M][Br] again from Q, K and LSE; dV += Pᵀ dO ---------------------------------
        float P[M][N][4] = {}, dS[M][N][4] = {};
        multiply_transposed<T, d>(P, K, key, Qi);
        probabilities(P, lse, scale * LOG2_E);
        const int keys = Nk - first_key - key;
        const int last_visible = causal ? tile * Br - Nq + keys : 1 << 30;
        if (min(last_visible, keys - 1) < 16 * M - 1) mask_probabilities(P, last_visible, keys);
        multiply_transposed<T, d>(dS, V, key, dOi);
        add_product<T, d>(dV, P, dOi, column);

        // ---- dSᵀ [16 M][Br]; dK += dSᵀ Q --------------------------------------------------------
        score_gradients(dS, P, dots);
        store_accumulator<T, Br>(shared + (DS - K), key, dS, 1.0f);
        add_product<T, d>(dK, dS, Qi, column);

        // ---- dQ [Br][D] += dS K, once all warps have stored their dSᵀ ---------------------------
        __syncthreads();
        const long long sums = (((long long)head * row_tiles + tile) * SLICES + slice) * Br * D;
        add_query_gradients<T, d, D, Br, Bc, WARPS>(dq_sums + sums, DS, K, column);
        head = next_head, tile = next_tile, stage ^= 1;
    }

    // ---- Epilogue: dK, dV [16 M][D] by way of shared memory, where K and V were -----------------
    cp_async_wait<0>();
    __syncthreads();
    store_accumulator<T, D>(shared, key, dK, scale);
    store_accumulator<T, D>(shared + KV_BYTES, key, dV, 1.0f);
    __syncwarp();
    const long long out_row = (long long)kv_head * Nk + first_key;
    store_rows<T, d, D, 16 * M>(dk + column, shared, key, out_row, Nk - first_key);
    store_rows<T, d, D, 16 * M>(dv + column, shared + KV_BYTES, key, out_row, Nk - first_key);
}
