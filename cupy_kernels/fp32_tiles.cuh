// Products of small fp32 matrices that lie in shared memory, on ordinary CUDA cores.
//
// A warp owns ROWS rows of one factor. For A Bᵀ a lane takes one row of B, for A B it takes columns
// lane, lane + 32, …; what the 32 lanes share (a number of A) is one address, which costs as much
// as a single lane. Where each lane reads a row of its own, rows are 4 floats longer than their
// content: d + 4 floats apart, 8 lanes that read 16 bytes each touch all 32 banks once. With rows
// of d floats (a multiple of 32) they would all want the same 4 banks.
#pragma once

#include "warp_reduce.cuh"

#define PADDING 4  // floats behind a row, a whole number of 16-byte pieces

__device__ __forceinline__ float4 load4(const float* x) {
    return *reinterpret_cast<const float4*>(x);
}

// The first `left` rows of a matrix [left, d] into a tile, by the THREADS that call it with their
// number; the tile's other rows become 0: a product with them is harmless, one with garbage is not.
template <int d, int THREADS, int ROWS, int STRIDE>
__device__ __forceinline__ void load_tile(float (*tile)[STRIDE], const float* __restrict__ from,
                                          int left, int thread) {
    constexpr int PIECES = d / 4;  // of 16 bytes in a row; neighbouring threads take neighbours
#pragma unroll
    for (int piece = 0; piece < ROWS * PIECES; piece += THREADS) {
        const int row = (piece + thread) / PIECES, c = (piece + thread) % PIECES * 4;
        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row < left) x = load4(from + row * d + c);
        *reinterpret_cast<float4*>(&tile[row][c]) = x;
    }
}

// The first `left` of ROWS rows in HBM into registers, columns lane, lane + 32, …; the others: 0.
template <int d, int ROWS, int COLUMNS>
__device__ __forceinline__ void load_rows(float (&x)[ROWS][COLUMNS], const float* from, int left,
                                          int lane) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int t = 0; t < COLUMNS; ++t)
            x[r][t] = r < left ? from[r * d + lane + WARP_SIZE * t] : 0.0f;
}

// And back again.
template <int d, int ROWS, int COLUMNS>
__device__ __forceinline__ void store_rows(float* to, const float (&x)[ROWS][COLUMNS], int left,
                                           int lane) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int t = 0; t < COLUMNS; ++t)
            if (r < left) to[r * d + lane + WARP_SIZE * t] = x[r][t];
}

// s[r] = row r of A · row `lane` of B, over d columns: S = Q Kᵀ and dP = dO Vᵀ.
template <int d, int ROWS, int A_STRIDE, int B_STRIDE>
__device__ __forceinline__ void dot_products(float (&s)[ROWS], const float (*A)[A_STRIDE],
                                             const float (*B)[B_STRIDE], int lane) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) s[r] = 0.0f;
#pragma unroll 2
    for (int c = 0; c < d; c += 4) {
        const float4 b = load4(&B[lane][c]);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float4 a = load4(&A[r][c]);
            s[r] += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
        }
    }
}

// sums[r][t] += Σ_j A[r][j] · B[j][lane + 32 t]: O += P V and dQ += dS K.
template <int ROWS, int COLUMNS, int N, int STRIDE>
__device__ __forceinline__ void add_product(float (&sums)[ROWS][COLUMNS], const float (*A)[N],
                                            const float (*B)[STRIDE], int lane) {
#pragma unroll 2
    for (int j = 0; j < N; j += 4) {
        float b[4][COLUMNS];
#pragma unroll
        for (int t = 0; t < COLUMNS; ++t)
#pragma unroll
            for (int i = 0; i < 4; ++i) b[i][t] = B[j + i][lane + WARP_SIZE * t];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float4 a = load4(&A[r][j]);
#pragma unroll
            for (int t = 0; t < COLUMNS; ++t)
                sums[r][t] += a.x * b[0][t] + a.y * b[1][t] + a.z * b[2][t] + a.w * b[3][t];
        }
    }
}

// sums[j][t] += Σ_i A[i][first + j] · B[i][lane + 32 t]: dV += Pᵀ dO and dK += dSᵀ Q.
template <int ROWS, int COLUMNS, int N, int M, int STRIDE>
__device__ __forceinline__ void add_transposed(float (&sums)[ROWS][COLUMNS],
                                               const float (&A)[N][M],
                                               const float (&B)[N][STRIDE], int first, int lane) {
#pragma unroll 2
    for (int i = 0; i < N; ++i) {
        float b[COLUMNS];
#pragma unroll
        for (int t = 0; t < COLUMNS; ++t) b[t] = B[i][lane + WARP_SIZE * t];
#pragma unroll
        for (int j = 0; j < ROWS; j += 4) {
            const float4 a = load4(&A[i][first + j]);
#pragma unroll
            for (int t = 0; t < COLUMNS; ++t) {
                sums[j][t] += a.x * b[t], sums[j + 1][t] += a.y * b[t];
                sums[j + 2][t] += a.z * b[t], sums[j + 3][t] += a.w * b[t];
            }
        }
    }
}
