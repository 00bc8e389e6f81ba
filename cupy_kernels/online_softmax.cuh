// The online softmax on accumulators of tensor cores, 16 rows of S an m-tile.
//
// A row of S lies in the four lanes of a quad: S[m][n][2r], S[m][n][2r + 1] are row 16m + 8r + g,
// columns 8n + 2c, 8n + 2c + 1 (tensor_core.cuh has g and c). m and l are kept per row, [m][r].
#pragma once

#include "tensor_core.cuh"

#define LOG2_E 1.4426950408889634f

__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

// −∞ where a key lies behind the last one that its row sees, or behind the last one there is. All
// counted from the tile's first key: the warp's first row sees `last_visible`, there are `keys`.
template <int M, int N>
__device__ __forceinline__ void mask_scores(float (&S)[M][N][4], int last_visible, int keys) {
#pragma unroll
    for (int t = 0; t < M; ++t) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int row = 16 * t + 8 * r + threadIdx.x % 32 / 4;
            // Less this lane's share of the column: one number to compare constants with.
            const int last = min(last_visible + row, keys - 1) - (int)threadIdx.x % 4 * 2;
#pragma unroll
            for (int n = 0; n < N; ++n) {
                if (8 * n > last) S[t][n][2 * r] = -INFINITY;
                if (8 * n + 1 > last) S[t][n][2 * r + 1] = -INFINITY;
            }
        }
    }
}

// S → P = e^(scale · S − new maximum); m, l and O move on to the new maximum. The scale is folded
// into the exponent, with log2 e because the hardware's exponential has base 2.
//
// l stays a partial sum of this lane's columns: the quad adds up once, after the last tile.
template <int M, int N, int D>
__device__ __forceinline__ void online_softmax(float (&S)[M][N][4], float (&m)[M][2],
                                               float (&l)[M][2], float (&O)[M][D][4],
                                               float scale_log2) {
#pragma unroll
    for (int t = 0; t < M; ++t) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float m_new = m[t][r];
#pragma unroll
            for (int n = 0; n < N; ++n) {
                m_new = fmaxf(m_new, fmaxf(S[t][n][2 * r], S[t][n][2 * r + 1]));
            }
            m_new = quad_max(m_new);
            // A row that has seen no key yet has m = −∞, and −∞ − (−∞) is NaN: shift by 0 instead.
            const float shift = m_new == -INFINITY ? 0.0f : m_new * scale_log2;
            const float rescale = exp2_approx(m[t][r] * scale_log2 - shift);
            m[t][r] = m_new;
            l[t][r] *= rescale;
#pragma unroll
            for (int n = 0; n < D; ++n) {
                O[t][n][2 * r] *= rescale;
                O[t][n][2 * r + 1] *= rescale;
            }
#pragma unroll
            for (int n = 0; n < N; ++n) {
                S[t][n][2 * r] = exp2_approx(S[t][n][2 * r] * scale_log2 - shift);
                S[t][n][2 * r + 1] = exp2_approx(S[t][n][2 * r + 1] * scale_log2 - shift);
                l[t][r] += S[t][n][2 * r] + S[t][n][2 * r + 1];
            }
        }
    }
}

// Columns 16k … 16k + 15 of P, rounded, as the A operand of P V: no lane moves a number.
template <typename T, int N>
__device__ __forceinline__ void pack_a(uint32_t (&a)[4], const float (&P)[N][4], int k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float* pair = &P[2 * k + i / 2][i % 2 * 2];
        a[i] = pack<T>(pair[0], pair[1]);
    }
}
