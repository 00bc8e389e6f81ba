// FlashAttention-1, backward, before the main kernel: D = rowsum(dO ∘ O), one number a query.
//
// rowsum(P ∘ dP), which the softmax's gradient needs, runs over all keys of a row. It equals
// rowsum(dO ∘ O), which runs over the d columns only: so dS = P ∘ (dP − D) works tile by tile.
//
// A warp takes 8 neighbouring rows: their 8 results fill one sector of 32 bytes.
//
//   grid  (⌈rows / 32⌉)      block (128)

#include "warp_reduce.cuh"

#define ROWS 8

extern "C" __global__ void flash1_row_dots(
    const float* __restrict__ o,   // [rows, d], rows = batch · heads · Nq
    const float* __restrict__ dO,  // [rows, d]
    float* __restrict__ D,         // [rows]
    int rows, int d) {
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const int row = (blockIdx.x * (blockDim.x / WARP_SIZE) + warp) * ROWS;  // the warp's first

    float mine = 0.0f;  // lane r keeps the sum of row r
    // BEGIN SOLUTION
    for (int r = 0; r < ROWS && row + r < rows; ++r) {
        const long long start = (long long)(row + r) * d;
        float sum = 0.0f;
        for (int c = lane; c < d; c += WARP_SIZE) sum += dO[start + c] * o[start + c];
        sum = warp_sum(sum);
        if (lane == r) mine = sum;
    }
    if (lane < ROWS && row + lane < rows) D[row + lane] = mine;
    // END SOLUTION
}
