// The forward pass that the steps 1 to 5 share: Algorithm 1 of FlashAttention-2 (arXiv 2307.08691),
// 16 rows of Q a warp. What a step changes is its Tile: how a tile lies in shared memory, how it
// gets there, and how a warp reads the operands of an mma from it.
//
//   Tile::STAGES                       tiles of K and of V in shared memory: 1, or 2 in turns
//   Tile::BYTES                        of one tile, [64][d] of 16-bit numbers
//   Tile::copy(tile, from, left)       copy 64 rows (or start to); zeros from row `left` on
//   Tile::arrived()                    wait until this thread's copies are there
//   Tile::load_a(a, tile, row, k)      16 × 16 of [row][k] as an A operand
//   Tile::load_b(b, tile, column, k)   16 × 16 of [column][k] as two B operands
//   Tile::load_b_trans(b, tile, k, column)   16 × 16 of [k][column] as two B operands
//
//   grid  (⌈Nq / 64⌉, batch · heads), causal (heads of a section, ⌈Nq / 64⌉, sections)
//   block (128)
//   shared memory  Q [64][d], K and V [STAGES][64][d]
#pragma once

#include "online_softmax.cuh"

constexpr int STEP_ROWS = 64, STEP_KEYS = 64, STEP_THREADS = 128;

// S [16][64] = Q Kᵀ for the warp's 16 rows.
template <typename Tile, typename T, int d>
__device__ __forceinline__ void step_scores(float (&S)[1][STEP_KEYS / 8][4], const unsigned char* Q,
                                            int row, const unsigned char* K) {
#pragma unroll
    for (int k = 0; k < d; k += 16) {
        uint32_t a[4], b[4];
        Tile::load_a(a, Q, row, k);
#pragma unroll
        for (int n = 0; n < STEP_KEYS / 8; n += 2) {
            Tile::load_b(b, K, 8 * n, k);
            mma_m16n8k16<T>(S[0][n], a, b[0], b[1]);
            mma_m16n8k16<T>(S[0][n + 1], a, b[2], b[3]);
        }
    }
}

// O [16][d] += P V.
template <typename Tile, typename T, int d>
__device__ __forceinline__ void step_weighted_values(float (&O)[1][d / 8][4],
                                                     const float (&P)[1][STEP_KEYS / 8][4],
                                                     const unsigned char* V) {
#pragma unroll
    for (int k = 0; k < STEP_KEYS / 16; ++k) {
        uint32_t a[4], b[4];
        pack_a<T>(a, P[0], k);
#pragma unroll
        for (int n = 0; n < d / 8; n += 2) {
            Tile::load_b_trans(b, V, 16 * k, 8 * n);
            mma_m16n8k16<T>(O[0][n], a, b[0], b[1]);
            mma_m16n8k16<T>(O[0][n + 1], a, b[2], b[3]);
        }
    }
}

// O / l and LSE straight from the accumulators: 4 bytes a lane, half a sector of a row at a time.
template <typename T, int d>
__device__ __forceinline__ void step_store(T* o, float* lse, int row, int Nq,
                                           const float (&O)[d / 8][4], const float (&m)[2],
                                           const float (&l)[2], float scale) {
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int i = row + 8 * r + g;
        const float sum = quad_sum(l[r]), inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
        if (i >= Nq) continue;
        if (c == 0) lse[i] = m[r] * scale + logf(sum);
#pragma unroll
        for (int n = 0; n < d / 8; ++n) {
            uint32_t* pair = reinterpret_cast<uint32_t*>(o + (long long)i * d + 8 * n + 2 * c);
            *pair = pack<T>(O[n][2 * r] * inverse, O[n][2 * r + 1] * inverse);
        }
    }
}

template <typename Tile, typename T, int d, bool causal>
__device__ __forceinline__ void forward_in_steps(
    const T* q,  // [batch, heads, Nq, d]
    const T* k,  // [batch, kv_heads, Nk, d]
    const T* v,  // [batch, kv_heads, Nk, d]
    T* o,        // [batch, heads, Nq, d]
    float* lse,  // [batch, heads, Nq]
    int group, int Nq, int Nk, float scale) {  // group = heads / kv_heads
    extern __shared__ __align__(128) unsigned char shared[];
    unsigned char *Q = shared, *K = Q + Tile::BYTES, *V = K + Tile::STAGES * Tile::BYTES;

    // ---- Which rows are mine ----------------------------------------------------------------
    const int row_tile = causal ? gridDim.y - 1 - blockIdx.y : blockIdx.x;       // longest first
    const int head = causal ? blockIdx.z * gridDim.x + blockIdx.x : blockIdx.y;  // of all batches
    const int kv_head = head / group;  // the query heads of a group share it, also counted so
    const int first = row_tile * STEP_ROWS;  // row of the block
    const int row = threadIdx.x / 32 * 16;  // of the warp, counted from there
    q += (long long)head * Nq * d, o += (long long)head * Nq * d, lse += (long long)head * Nq;
    k += (long long)kv_head * Nk * d, v += (long long)kv_head * Nk * d;

    // Row i sees keys up to i + Nk − Nq: the mask is aligned bottom-right.
    const int last_visible = causal ? first + row + Nk - Nq : Nk;
    const int keys = causal ? min(Nk, first + STEP_ROWS + Nk - Nq) : Nk;  // that the block sees
    const int tiles = keys > 0 ? (keys + STEP_KEYS - 1) / STEP_KEYS : 0;

    // ---- Q [64][d]; with two stages the first K and V [64][d] as well ---------------------------
    auto copy_keys = [&](int j) {
        const int stage = j % Tile::STAGES * Tile::BYTES, key = j * STEP_KEYS;
        Tile::copy(K + stage, k + (long long)key * d, Nk - key);
        Tile::copy(V + stage, v + (long long)key * d, Nk - key);
    };
    Tile::copy(Q, q + (long long)first * d, Nq - first);
    if (Tile::STAGES == 2 && tiles > 0) copy_keys(0);

    float O[1][d / 8][4] = {}, m[1][2] = {{-INFINITY, -INFINITY}}, l[1][2] = {};
    for (int j = 0; j < tiles; ++j) {
        // ---- Tile j: copied now, or on its way since the last step, the next one started now ----
        if (Tile::STAGES == 1) {
            __syncthreads();  // every warp has left the last tile
            copy_keys(j);
        }
        Tile::arrived();
        __syncthreads();
        if (Tile::STAGES == 2 && j + 1 < tiles) copy_keys(j + 1);

        // ---- S, P [16][64], O [16][d] -----------------------------------------------------------
        const int stage = j % Tile::STAGES * Tile::BYTES, key = j * STEP_KEYS;
        float S[1][STEP_KEYS / 8][4] = {};
        step_scores<Tile, T, d>(S, Q, row, K + stage);
        if (min(last_visible, Nk - 1) < key + STEP_KEYS - 1) {
            mask_scores(S, last_visible - key, Nk - key);
        }
        online_softmax(S, m, l, O, scale * LOG2_E);
        step_weighted_values<Tile, T, d>(O, S, V + stage);
    }
    Tile::arrived();  // a block that sees no key still waits for its Q
    step_store<T, d>(o, lse, first + row, Nq, O[0], m[0], l[0], scale);
}
