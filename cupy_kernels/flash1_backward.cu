// FlashAttention-1, backward (arXiv 2205.14135, Algorithm 4), fp32, with the LSE of
// FlashAttention-2 in place of l and m: P is computed again from Q, K and one number a row.
//
// One block owns one head of K and V, and serves the query heads that share it one by one. The
// outer loop loads each tile of Bc keys once and keeps its dK and dV in registers; for every tile
// of Br queries the block computes P and dS, adds to dK and dV on chip, and to dQ in HBM.
//
// Two ways to share out the work: for S, P, dP, dS and dQ a warp takes ROWS queries, for dK and dV
// it takes KEYS keys. So P and dS change hands through shared memory, and the block waits for it.
//
//   grid  (batch · kv_heads)      block (128)
//   shared memory  K, V [Bc][d + 4]   Q, dO [Br][d]   P, dS [Br][Bc]   LSE, D [Br]

#include "fp32_tiles.cuh"
#include "warp_reduce.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 64  // 32, 64, 96 or 128: compile with -DHEAD_DIM=…
#endif

constexpr int d = HEAD_DIM;
constexpr int WARPS = 4, THREADS = WARPS * WARP_SIZE;
constexpr int Bc = WARP_SIZE;                        // keys of a tile, one a lane
constexpr int ROWS = d <= 64 ? 8 : d <= 96 ? 4 : 2;  // queries a warp: as many as 48 KB hold
constexpr int Br = WARPS * ROWS, KEYS = Bc / WARPS;
constexpr int COLUMNS = d / WARP_SIZE;  // of dQ, dK and dV a lane: lane, lane + 32, …

// LSE and D of a tile, [Br] each. Rows that are not there get LSE = +∞: P = e^(S − LSE) is 0.
__device__ __forceinline__ void load_row_values(float (&lse_tile)[Br], float (&D_tile)[Br],
                                                const float* lse, const float* D, int left) {
    const int i = threadIdx.x;
    if (i >= Br) return;
    lse_tile[i] = i < left ? lse[i] : INFINITY;
    D_tile[i] = i < left ? D[i] : 0.0f;
}

// s[r] → P = e^(scale · s[r] − LSE), and 0 where query row + r may not see this lane's key: there
// the exponential need not be small, and in a row that sees no key, whose LSE is −∞, it is +∞.
__device__ __forceinline__ void probabilities(float (&s)[ROWS], const float* lse, float scale,
                                              int key, int row, int Nq, int Nk, int causal) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const bool visible = key < Nk && (!causal || key <= row + r + Nk - Nq);
        s[r] = visible ? expf(scale * s[r] - lse[r]) : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) flash1_backward(
    const float* __restrict__ q,    // [batch, heads, Nq, d]
    const float* __restrict__ k,    // [batch, kv_heads, Nk, d]
    const float* __restrict__ v,    // [batch, kv_heads, Nk, d]
    const float* __restrict__ dO,   // [batch, heads, Nq, d]
    const float* __restrict__ lse,  // [batch, heads, Nq]
    const float* __restrict__ D,    // [batch, heads, Nq], rowsum(dO ∘ O)
    float* __restrict__ dq,         // [batch, heads, Nq, d]
    float* __restrict__ dk,         // [batch, kv_heads, Nk, d]
    float* __restrict__ dv,         // [batch, kv_heads, Nk, d]
    int heads, int kv_heads, int Nq, int Nk, float scale, int causal) {
    // In K and V a lane reads a row of its own, so they are padded; the others are read as one
    // address for all lanes or along a row, where no two lanes want the same bank.
    __shared__ __align__(16) float K[Bc][d + PADDING], V[Bc][d + PADDING];
    __shared__ __align__(16) float Q[Br][d], DO[Br][d];
    __shared__ __align__(16) float P[Br][Bc], dS[Br][Bc];
    __shared__ float lse_tile[Br], D_tile[Br];
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const int my_row = warp * ROWS, my_key = warp * KEYS;  // the warp's first of a tile

    // ---- Which heads are mine ---------------------------------------------------------------
    const int group = heads / kv_heads;  // query heads that share these keys
    const long long first_head = (long long)blockIdx.x * group;  // counted over the batch
    k += (long long)blockIdx.x * Nk * d, v += (long long)blockIdx.x * Nk * d;
    dk += (long long)blockIdx.x * Nk * d, dv += (long long)blockIdx.x * Nk * d;

    // ---- Query tiles that see no key (causal, Nq > Nk): dQ = 0 --------------------------------
    const int unseen = causal ? max(0, Nq - Nk) / Br * Br : 0;
    for (int h = 0; h < group; ++h) {
        float* dq_head = dq + (first_head + h) * Nq * d;
        for (int i = threadIdx.x; i < unseen * d; i += THREADS) dq_head[i] = 0.0f;
    }

    for (int first_key = 0; first_key < Nk; first_key += Bc) {
        // ---- K, V [Bc][d]: from HBM, once ---------------------------------------------------
        load_tile<d, THREADS, Bc>(K, k + (long long)first_key * d, Nk - first_key, threadIdx.x);
        load_tile<d, THREADS, Bc>(V, v + (long long)first_key * d, Nk - first_key, threadIdx.x);
        float dK[KEYS][COLUMNS] = {}, dV[KEYS][COLUMNS] = {};

        // Causal: query i sees the keys up to i + Nk − Nq. Tiles of queries above that are skipped.
        const int first_tile = causal ? max(0, first_key - (Nk - Nq)) / Br : 0;
        for (int h = 0; h < group; ++h) {
            for (int tile = first_tile * Br; tile < Nq; tile += Br) {
                const long long row = (first_head + h) * Nq + tile;  // in Q, dO, LSE, D and dQ

                // ---- Q, dO [Br][d]; LSE, D [Br] -----------------------------------------
                load_tile<d, THREADS, Br>(Q, q + row * d, Nq - tile, threadIdx.x);
                load_tile<d, THREADS, Br>(DO, dO + row * d, Nq - tile, threadIdx.x);
                load_row_values(lse_tile, D_tile, lse + row, D + row, Nq - tile);
                __syncthreads();  // a warp reads rows and keys that other warps have loaded

                // ---- P = e^(S − LSE), dS = scale · P ∘ (dP − D): [ROWS][Bc], a key a lane ---
                // The scale of S = scale · Q Kᵀ is put in here, so that dK and dQ need none.
                float p[ROWS], dp[ROWS];
                // BEGIN SOLUTION
                dot_products<d>(p, Q + my_row, K, lane);
                probabilities(p, lse_tile + my_row, scale, first_key + lane, tile + my_row, Nq,
                              Nk, causal);
                dot_products<d>(dp, DO + my_row, V, lane);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    P[my_row + r][lane] = p[r];
                    dS[my_row + r][lane] = scale * p[r] * (dp[r] - D_tile[my_row + r]);
                }
                __syncthreads();  // dK and dV need all rows of P and dS, each warp has some
                // END SOLUTION

                // ---- dV += Pᵀ dO, dK += dSᵀ Q: [KEYS][d], columns lane, lane + 32, … -------
                // BEGIN SOLUTION
                add_transposed(dV, P, DO, my_key, lane);
                add_transposed(dK, dS, Q, my_key, lane);
                // END SOLUTION

                // ---- dQ += dS K: [ROWS][d], read from HBM and written back ---------------------
                // The first tile of keys finds no dQ: HBM holds anything there, so it is not read.
                // BEGIN SOLUTION
                const int left = Nq - tile - my_row, known = first_key == 0 ? 0 : left;
                float dq_rows[ROWS][COLUMNS];
                load_rows<d>(dq_rows, dq + (row + my_row) * d, known, lane);
                add_product(dq_rows, dS + my_row, K, lane);
                store_rows<d>(dq + (row + my_row) * d, dq_rows, left, lane);
                // END SOLUTION
                __syncthreads();  // all warps are done with the tiles that the next ones overwrite
            }
        }

        // ---- dK, dV [Bc][d]: to HBM, once ---------------------------------------------------
        const long long key = first_key + my_key;
        store_rows<d>(dk + key * d, dK, Nk - first_key - my_key, lane);
        store_rows<d>(dv + key * d, dV, Nk - first_key - my_key, lane);
    }
}
