// y = the sum of each row of X, one block a row.
//
// Three steps, each with fewer numbers: every thread adds up its share of the row, the 32 lanes of a
// warp join theirs by shuffles, and the warps join theirs through shared memory.
//
//   grid  (rows)      block (128)

#define WARP_SIZE 32
#define ALL_LANES 0xffffffffu
#define MAX_WARPS 32

extern "C" __global__ void row_sum(
    const float* __restrict__ x,  // [rows, n]
    float* __restrict__ y,        // [rows]
    int n) {
    __shared__ float per_warp[MAX_WARPS];
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const int warps = blockDim.x / WARP_SIZE;
    x += (long long)blockIdx.x * n;  // now x[j] is element j of this block's row

    // ---- A thread's share -------------------------------------------------------------------
    // Neighbouring threads take neighbouring elements, and step on by a whole block.
    float sum = 0.0f;
    // BEGIN SOLUTION
    for (int j = threadIdx.x; j < n; j += blockDim.x) sum += x[j];
    // END SOLUTION

    // ---- A warp's sum -----------------------------------------------------------------------
    // Five exchanges with the lane 16, 8, 4, 2 and 1 apart: then every lane holds the sum.
    // BEGIN SOLUTION
    for (int apart = WARP_SIZE / 2; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(ALL_LANES, sum, apart);
    }
    // END SOLUTION

    // ---- The block's sum --------------------------------------------------------------------
    // Lane 0 of each warp puts its sum into per_warp; thread 0 adds these up and stores the total.
    // BEGIN SOLUTION
    if (lane == 0) per_warp[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int w = 0; w < warps; ++w) total += per_warp[w];
        y[blockIdx.x] = total;
    }
    // END SOLUTION
}
