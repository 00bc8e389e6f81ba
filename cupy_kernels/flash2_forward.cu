// FlashAttention-2, forward (arXiv 2307.08691, Algorithm 1) on tensor cores.
//
// A block owns Br rows of Q and walks along K and V in tiles of Bc keys; S, P, m, l and O never
// leave the registers. Each warp has Br / WARPS rows, 16 or 32 of them: with 32, every fragment of
// K and V that ldmatrix brings feeds two products, and shared memory keeps up with the tensor
// cores. While a tile is worked on, cp.async brings the next one into the other of two stages.
//
//   grid  (⌈Nq / Br⌉, batch · heads), causal (heads of a section, ⌈Nq / Br⌉, sections)
//   block (32 · WARPS)
//   shared memory  Q [Br][d], K and V [2 stages][Bc][d], 16-bit, swizzled

#include "online_softmax.cuh"
#include "swizzled_tile.cuh"

// The warp's rows of Q as A operands: kept in registers, or read again for every tile where O
// leaves no room for them (d ≥ 128).
template <int d, int M, bool IN_REGISTERS>
struct QueryFragments {
    uint32_t address, kept[M][IN_REGISTERS ? d / 16 : 1][4];

    __device__ __forceinline__ void load() {
        if (!IN_REGISTERS) return;
#pragma unroll
        for (int t = 0; t < M; ++t)
#pragma unroll
            for (int k = 0; k < d / 16; ++k)
                ldmatrix_x4(kept[t][k], moved<d>(address, 16 * t, 16 * k));
    }

    __device__ __forceinline__ void get(uint32_t (&a)[4], int t, int k) const {
        if constexpr (IN_REGISTERS) {
            for (int i = 0; i < 4; ++i) a[i] = kept[t][k][i];
        } else {
            ldmatrix_x4(a, moved<d>(address, 16 * t, 16 * k));
        }
    }
};

// S = Q Kᵀ for the warp's rows, each fragment of K used for all M row tiles.
template <typename T, int d, int M, int N, bool IN_REGISTERS>
__device__ __forceinline__ void scores(float (&S)[M][N][4],
                                       const QueryFragments<d, M, IN_REGISTERS>& Q, uint32_t K) {
    K = right_first<d>(K, 0, 0);
#pragma unroll
    for (int k = 0; k < d / 16; ++k) {
        uint32_t a[M][4], b[4];
#pragma unroll
        for (int t = 0; t < M; ++t) Q.get(a[t], t, k);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            ldmatrix_x4(b, moved<d>(K, 8 * n, 16 * k));
#pragma unroll
            for (int t = 0; t < M; ++t) {
                mma_m16n8k16<T>(S[t][n], a[t], b[0], b[1]);
                mma_m16n8k16<T>(S[t][n + 1], a[t], b[2], b[3]);
            }
        }
    }
}

// O += P V, each fragment of V used for all M row tiles of the warp.
template <typename T, int d, int M, int N>
__device__ __forceinline__ void add_weighted_values(float (&O)[M][d / 8][4],
                                                    const float (&P)[M][N][4], uint32_t V) {
    V = down_first<d>(V, 0, 0);
#pragma unroll
    for (int k = 0; k < N / 2; ++k) {
        uint32_t a[M][4], b[4];
#pragma unroll
        for (int t = 0; t < M; ++t) pack_a<T>(a[t], P[t], k);
#pragma unroll
        for (int n = 0; n < d / 8; n += 2) {
            ldmatrix_x4_trans(b, moved<d>(V, 16 * k, 8 * n));
#pragma unroll
            for (int t = 0; t < M; ++t) {
                mma_m16n8k16<T>(O[t][n], a[t], b[0], b[1]);
                mma_m16n8k16<T>(O[t][n + 1], a[t], b[2], b[3]);
            }
        }
    }
}

// One step of Algorithm 1: the warp's [16 M][d] of Q with a tile [Bc][d] of K and V. The last
// arguments are for `mask_scores`, counted from the tile's first key.
template <typename T, int d, bool masked, int N, int M, bool IN_REGISTERS>
__device__ __forceinline__ void attend(const QueryFragments<d, M, IN_REGISTERS>& Q,
                                       float (&O)[M][d / 8][4], float (&m)[M][2], float (&l)[M][2],
                                       uint32_t K, uint32_t V, float scale_log2, int last_visible,
                                       int keys) {
    float S[M][N][4] = {};
    scores<T>(S, Q, K);
    if (masked) mask_scores(S, last_visible, keys);
    online_softmax(S, m, l, O, scale_log2);
    add_weighted_values<T, d>(O, S, V);
}

// O / l into the warp's rows of the Q tile (no other warp reads them), so that HBM gets whole rows.
template <typename T, int d, int M>
__device__ __forceinline__ void stage_output(unsigned char* Q, int row,
                                             const float (&O)[M][d / 8][4],
                                             const float (&l)[M][2]) {
    const int g = lane_id() / 4, c = lane_id() % 4;
#pragma unroll
    for (int t = 0; t < M; ++t) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const float inverse = l[t][r] > 0.0f ? 1.0f / l[t][r] : 0.0f;  // no visible key: O = 0
#pragma unroll
            for (int n = 0; n < d / 8; ++n) {
                const int at = swizzle<d>(row + 16 * t + 8 * r + g, n) + 4 * c;
                const float* o = &O[t][n][2 * r];
                *reinterpret_cast<uint32_t*>(Q + at) = pack<T>(o[0] * inverse, o[1] * inverse);
            }
        }
    }
}

// The warp's `rows` rows from shared memory to HBM, 16 bytes a lane. The block's rows are row
// `first` of `o` on; `left` of them exist.
template <typename T, int d, int rows>
__device__ __forceinline__ void store_rows(T* o, const unsigned char* tile, int row,
                                           long long first, int left) {
    constexpr int CHUNKS = d / 8;
#pragma unroll
    for (int start = 0; start < rows * CHUNKS; start += 32) {
        const int r = row + (start + lane_id()) / CHUNKS, chunk = (start + lane_id()) % CHUNKS;
        if (r >= left) continue;
        const uint4 data = *reinterpret_cast<const uint4*>(tile + swizzle<d>(r, chunk));
        *reinterpret_cast<uint4*>(o + (first + r) * d + chunk * 8) = data;
    }
}

template <typename T, int d, int Br, int Bc, int WARPS, int BLOCKS, bool Q_IN_REGISTERS,
          bool causal>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) flash2_forward(
    const T* __restrict__ q,    // [batch, heads, Nq, d]
    const T* __restrict__ k,    // [batch, kv_heads, Nk, d]
    const T* __restrict__ v,    // [batch, kv_heads, Nk, d]
    T* __restrict__ o,          // [batch, heads, Nq, d]
    float* __restrict__ lse,    // [batch, heads, Nq]
    int group, int Nq, int Nk, float scale) {  // group = heads / kv_heads
    constexpr int THREADS = WARPS * 32, M = Br / (16 * WARPS), N = Bc / 8;
    constexpr int Q_BYTES = Br * d * 2, KV_BYTES = Bc * d * 2;
    extern __shared__ __align__(128) unsigned char shared[];
    const uint32_t Q = __cvta_generic_to_shared(shared);
    const uint32_t K = Q + Q_BYTES, V = K + 2 * KV_BYTES;

    // ---- Which rows are mine ----------------------------------------------------------------
    // Causal row tiles at the end see the most keys: they go first, of a section of heads, and the
    // short ones fill the gaps. Else the row tiles of a head follow each other.
    const int row_tile = causal ? gridDim.y - 1 - blockIdx.y : blockIdx.x;
    const int head = causal ? blockIdx.z * gridDim.x + blockIdx.x : blockIdx.y;  // of all batches
    const int first = row_tile * Br, row = threadIdx.x / 32 * 16 * M;  // of the block, of the warp
    const int kv_head = head / group;  // the query heads of a group share it, also counted so
    const int key_row = kv_head * Nk;  // in all of k and v

    // Row i sees keys up to i + Nk − Nq: the mask is aligned bottom-right.
    const int last_visible = causal ? first + row + Nk - Nq : Nk;
    const int keys = causal ? min(Nk, first + Br + Nk - Nq) : Nk;  // that any row of the block sees
    const int tiles = keys > 0 ? (keys + Bc - 1) / Bc : 0;

    // ---- Prologue: Q [Br][d] and the first K, V [Bc][d] ---------------------------------------
    load_tile<Br, d, THREADS>(Q, q, head * Nq + first, Nq - first);
    if (tiles > 0) {
        load_tile<Bc, d, THREADS>(K, k, key_row, Nk);
        load_tile<Bc, d, THREADS>(V, v, key_row, Nk);
    }
    cp_async_commit();

    float O[M][d / 8][4] = {}, m[M][2], l[M][2] = {};
    for (int t = 0; t < M; ++t) m[t][0] = m[t][1] = -INFINITY;
    QueryFragments<d, M, Q_IN_REGISTERS> fragments = {down_first<d>(Q, row, 0)};

    // ---- Tile j has landed; every warp has left the other stage, tile j + 1 may overwrite it ----
    auto turn_to_tile = [&](int j) {
        cp_async_wait<0>();
        __syncthreads();
        const int next = (j + 1) % 2 * KV_BYTES, key = (j + 1) * Bc;
        if (j + 1 < tiles) {
            load_tile<Bc, d, THREADS>(K + next, k, key_row + key, Nk - key);
            load_tile<Bc, d, THREADS>(V + next, v, key_row + key, Nk - key);
        }
        cp_async_commit();
        if (j == 0) fragments.load();
    };

    // ---- Tiles that all rows see in full, then the rest: the long loop has no mask in it --------
    const int unmasked = max(0, (causal ? min(Nk, first + Nk - Nq + 1) : Nk) / Bc);
    const float scale_log2 = scale * LOG2_E;
    int j = 0;
    for (; j < unmasked; ++j) {
        turn_to_tile(j);
        const int stage = j % 2 * KV_BYTES;
        attend<T, d, false, N>(fragments, O, m, l, K + stage, V + stage, scale_log2, 0, 0);
    }
    for (; j < tiles; ++j) {
        turn_to_tile(j);
        const int stage = j % 2 * KV_BYTES, key = j * Bc;
        if (key > last_visible + 16 * M - 1) continue;  // no row of this warp sees any of it
        attend<T, d, true, N>(fragments, O, m, l, K + stage, V + stage, scale_log2,
                              last_visible - key, Nk - key);
    }

    // ---- Epilogue: divide by l once, O [16 M][d] and LSE [16 M] to HBM --------------------------
    cp_async_wait<0>();
    __syncthreads();  // without a single tile, Q's copies may still be on their way
    const long long out_row = (long long)head * Nq + first;
    for (int t = 0; t < M; ++t)
        for (int r = 0; r < 2; ++r) {
            l[t][r] = quad_sum(l[t][r]);
            const int i = row + 16 * t + 8 * r + lane_id() / 4;
            if (lane_id() % 4 == 0 && first + i < Nq) {
                lse[out_row + i] = m[t][r] * scale + logf(l[t][r]);
            }
        }
    stage_output<T, d>(shared, row, O, l);
    __syncwarp();
    store_rows<T, d, 16 * M>(o, shared, row, out_row, Nq - first);
}
