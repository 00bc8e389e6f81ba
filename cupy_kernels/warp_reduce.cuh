// Sum or maximum of one value per thread, over a warp and over a block.
//
// A warp needs no shared memory: __shfl_xor_sync lets each lane read another lane's register, and
// after five exchanges (16, 8, 4, 2, 1 lanes apart) all 32 lanes hold the result. A block adds one
// trip through shared memory: one value per warp.
#pragma once

#define WARP_SIZE 32
#define ALL_LANES 0xffffffffu

__device__ __forceinline__ float warp_max(float x) {
    for (int apart = WARP_SIZE / 2; apart > 0; apart /= 2) {
        x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, apart));
    }
    return x;
}

__device__ __forceinline__ float warp_sum(float x) {
    for (int apart = WARP_SIZE / 2; apart > 0; apart /= 2) {
        x += __shfl_xor_sync(ALL_LANES, x, apart);
    }
    return x;
}

// The two block versions expect a one-dimensional block of whole warps, called by all its threads.
// `per_warp` is shared memory for one float a warp. The barrier at the end lets the caller reuse it
// at once: without it a fast warp's next write could overtake a slow warp's read.
__device__ __forceinline__ float block_max(float x, float* per_warp) {  // [warps]
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    x = warp_max(x);
    if (lane == 0) per_warp[warp] = x;
    __syncthreads();
    const int warps = blockDim.x / WARP_SIZE;
    x = warp_max(lane < warps ? per_warp[lane] : -INFINITY);  // every warp reduces the few values
    __syncthreads();
    return x;
}

__device__ __forceinline__ float block_sum(float x, float* per_warp) {  // [warps]
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    x = warp_sum(x);
    if (lane == 0) per_warp[warp] = x;
    __syncthreads();
    const int warps = blockDim.x / WARP_SIZE;
    x = warp_sum(lane < warps ? per_warp[lane] : 0.0f);
    __syncthreads();
    return x;
}
