// How the warps of a block share dQ of one tile of queries, [Br][D], and the order in which it lies
// in HBM while key tiles add to it: warp by warp, register by register, the 32 lanes side by side.
// So an atomic instruction of a warp covers 128 bytes in a row; in rows of D it would touch eight
// half-used sectors.
#pragma once

#include "swizzled_tile.cuh"

template <int D, int Br, int WARPS>
struct QueryGradients {
    // Where there are 16 rows for each warp, a warp takes whole rows; else two warps share them.
    static constexpr int ROW_WARPS = 16 * WARPS <= Br ? WARPS : 2;
    static constexpr int M = Br / ROW_WARPS / 16;          // m-tiles of 16 rows a warp
    static constexpr int N = D / (WARPS / ROW_WARPS) / 8;  // n-tiles of 8 columns a warp

    static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
    static __device__ __forceinline__ int row() { return warp() % ROW_WARPS * 16 * M; }
    static __device__ __forceinline__ int column() {
        return reread_thread_index() / 32 / ROW_WARPS * 8 * N;  // not kept: registers are short
    }

    // Of this lane's first element in the tile, and of register i of accumulator (m, n) from there.
    static __device__ __forceinline__ int start() {
        return warp() * (M * N * 4 * 32) + threadIdx.x % 32;
    }
    static __device__ __forceinline__ int offset(int m, int n, int i) {
        return ((m * N + n) * 4 + i) * 32;
    }
};
