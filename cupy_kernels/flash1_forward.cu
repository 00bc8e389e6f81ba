// FlashAttention-1, forward (arXiv 2205.14135, Algorithm 1), fp32: K and V stay on chip, the
// queries stream past.
//
// One block owns one head. The outer loop loads each tile of Bc keys once. For every tile of Br
// queries it reads back O, l and m, mixes the new keys in and writes all three again; S and P exist
// one tile at a time and never see HBM.
//
// A lane takes one key of the tile and a warp takes ROWS queries, so a row's maximum and sum are
// shuffles, and in the inner loop no warp waits for another.
//
//   grid  (batch · heads)      block (128)
//   shared memory  K [Bc][d + 4]   V [Bc][d]   Q [Br][d]   P [Br][Bc]

#include "fp32_tiles.cuh"
#include "warp_reduce.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 64  // 32, 64, 96 or 128: compile with -DHEAD_DIM=…
#endif

constexpr int d = HEAD_DIM;
constexpr int WARPS = 4, THREADS = WARPS * WARP_SIZE;
constexpr int Bc = WARP_SIZE;           // keys of a tile, one a lane
constexpr int ROWS = d <= 96 ? 8 : 4;   // queries a warp: as many as 48 KB of shared memory hold
constexpr int Br = WARPS * ROWS;        // queries of a tile
constexpr int COLUMNS = d / WARP_SIZE;  // of O a lane: lane, lane + 32, …

// e^(x − m). A row that has seen no key has m = −∞, and −∞ − (−∞) is NaN: all its terms are 0.
__device__ __forceinline__ float shifted_exp(float x, float m) {
    return m == -INFINITY ? 0.0f : expf(x - m);
}

// s[r] → scale · s[r], or −∞ where query row + r may not see this lane's key: it lies behind the
// last key there is, or (causal, aligned bottom-right) behind the last one that the query sees.
__device__ __forceinline__ void scale_and_mask(float (&s)[ROWS], float scale, int key, int row,
                                               int Nq, int Nk, int causal) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const bool visible = key < Nk && (!causal || key <= row + r + Nk - Nq);
        s[r] = visible ? scale * s[r] : -INFINITY;
    }
}

// What this tile alone needs: p = e^(s − m), its row maxima m and its row sums l.
__device__ __forceinline__ void tile_softmax(float (&p)[ROWS], float (&m)[ROWS], float (&l)[ROWS],
                                             const float (&s)[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        m[r] = warp_max(s[r]);
        p[r] = shifted_exp(s[r], m[r]);
        l[r] = warp_sum(p[r]);
    }
}

// One row of O, COLUMNS columns a lane, to the new maximum and denominator.
__device__ __forceinline__ void rescale(float (&o)[COLUMNS], float factor) {
#pragma unroll
    for (int t = 0; t < COLUMNS; ++t) o[t] *= factor;
}

// Three blocks an SM: for more of them the compiler would spill registers.
extern "C" __global__ void __launch_bounds__(THREADS, 3) flash1_forward(
    const float* __restrict__ q,  // [batch, heads, Nq, d]
    const float* __restrict__ k,  // [batch, kv_heads, Nk, d]
    const float* __restrict__ v,  // [batch, kv_heads, Nk, d]
    float* __restrict__ o,        // [batch, heads, Nq, d]
    float* __restrict__ l,        // [batch, heads, Nq], scratch: the running denominator
    float* __restrict__ m,        // [batch, heads, Nq], scratch: the running maximum
    float* __restrict__ lse,      // [batch, heads, Nq], m + ln l, written once
    int heads, int kv_heads, int Nq, int Nk, float scale, int causal) {
    __shared__ __align__(16) float K[Bc][d + PADDING];  // a lane reads a row: padded
    __shared__ __align__(16) float V[Bc][d];            // lanes read along a row: no conflict
    __shared__ __align__(16) float Q[Br][d];            // all lanes read one address
    __shared__ __align__(16) float P[Br][Bc];
    const int lane = threadIdx.x % WARP_SIZE, first_row = threadIdx.x / WARP_SIZE * ROWS;
    float (*my_Q)[d] = Q + first_row, (*my_P)[Bc] = P + first_row;  // this warp's rows

    // ---- Which head is mine -----------------------------------------------------------------
    const int head = blockIdx.x % heads, batch = blockIdx.x / heads;
    const int kv_head = batch * kv_heads + head / (heads / kv_heads);
    q += (long long)blockIdx.x * Nq * d, o += (long long)blockIdx.x * Nq * d;
    k += (long long)kv_head * Nk * d, v += (long long)kv_head * Nk * d;
    l += (long long)blockIdx.x * Nq, m += (long long)blockIdx.x * Nq;
    lse += (long long)blockIdx.x * Nq;

    // ---- Query tiles that see no key (causal, Nq > Nk): nothing but O = 0 and LSE = −∞ --------
    const int unseen = causal ? max(0, Nq - Nk) / Br * Br : 0;
    for (int i = threadIdx.x; i < unseen * d; i += THREADS) o[i] = 0.0f;
    for (int i = threadIdx.x; i < unseen; i += THREADS) lse[i] = -INFINITY;

    for (int first_key = 0; first_key < Nk; first_key += Bc) {
        // ---- K, V [Bc][d]: from HBM, once ---------------------------------------------------
        load_tile<d, THREADS, Bc>(K, k + (long long)first_key * d, Nk - first_key, threadIdx.x);
        load_tile<d, THREADS, Bc>(V, v + (long long)first_key * d, Nk - first_key, threadIdx.x);
        __syncthreads();  // a warp reads keys that other warps have loaded

        // Causal: query i sees the keys up to i + Nk − Nq. Tiles of queries above that are skipped.
        const int first_tile = causal ? max(0, first_key - (Nk - Nq)) / Br : 0;
        for (int tile = first_tile * Br; tile + first_row < Nq; tile += Br) {
            const int row = tile + first_row, left = Nq - row;  // this warp's first, and how many

            // ---- Q [ROWS][d] ----------------------------------------------------------------
            load_tile<d, WARP_SIZE, ROWS>(my_Q, q + (long long)row * d, left, lane);
            __syncwarp();  // a lane reads what the other lanes have loaded; P is free again

            // ---- O, l, m so far: O [ROWS][d], of l and m lane r keeps those of row r -----------
            // The first tile of keys finds none: HBM holds anything there, so it is not read.
            const bool is_mine = lane < min(ROWS, left), first = first_key == 0;
            float o_rows[ROWS][COLUMNS], l_row = 0.0f, m_row = -INFINITY;
            load_rows<d>(o_rows, o + (long long)row * d, first ? 0 : left, lane);
            if (is_mine && !first) l_row = l[row + lane], m_row = m[row + lane];

            // ---- S = scale · Q Kᵀ [ROWS][Bc], a key a lane; P and this tile's m, l --------------
            float s[ROWS], p[ROWS], m_tile[ROWS], l_tile[ROWS];
            // BEGIN SOLUTION
            dot_products<d>(s, my_Q, K, lane);
            scale_and_mask(s, scale, first_key + lane, row, Nq, Nk, causal);
            tile_softmax(p, m_tile, l_tile, s);
            // END SOLUTION

            // ---- Bring both to the common maximum, divide both by the common denominator -----
            // l = 0 is a query that sees no key: its O is 0.
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float l_old = __shfl_sync(ALL_LANES, l_row, r);
                const float m_old = __shfl_sync(ALL_LANES, m_row, r);
                // BEGIN SOLUTION
                const float m_new = fmaxf(m_old, m_tile[r]);
                const float keep = l_old * shifted_exp(m_old, m_new);
                const float join = shifted_exp(m_tile[r], m_new);
                const float l_new = keep + join * l_tile[r];
                const float inverse = l_new > 0.0f ? 1.0f / l_new : 0.0f;
                rescale(o_rows[r], keep * inverse);
                my_P[r][lane] = join * inverse * p[r];
                // END SOLUTION
                if (lane == r) l_row = l_new, m_row = m_new;
            }
            if (is_mine) l[row + lane] = l_row, m[row + lane] = m_row;
            __syncwarp();  // a lane needs all keys' P, each lane has one; Q is free again

            // ---- O += P V [ROWS][d], columns lane, lane + 32, … -------------------------------
            // BEGIN SOLUTION
            add_product(o_rows, my_P, V, lane);
            store_rows<d>(o + (long long)row * d, o_rows, left, lane);
            // END SOLUTION

            // ---- The last tile of keys that these queries see: their LSE is final ------------
            // l = 0 gives −∞, which is right for a query that sees no key.
            // BEGIN SOLUTION
            const int last_visible = min(tile + Br, Nq) - 1 + Nk - Nq;  // of the tile's last query
            const bool last = first_key + Bc >= Nk || (causal && first_key + Bc > last_visible);
            if (is_mine && last) lse[row + lane] = m_row + logf(l_row);
            // END SOLUTION
        }
        __syncthreads();  // all warps are done with K and V before the next tile overwrites them
    }
}
