// Naive attention, backward, through the softmax: dS = scale · P ∘ (dP − rowsum(P ∘ dP)).
//
// One block owns one row and reads P and dP twice from HBM: for the row's sum, and to write dS. The
// scale of S = scale · Q Kᵀ is put in here, where each score's gradient is touched anyway: so the
// products dQ = dS K and dK = dSᵀ Q need none.
//
//   grid  (batch · heads · Nq)      block (128)

#include "warp_reduce.cuh"

#define MAX_WARPS 32

extern "C" __global__ void naive_softmax_backward(
    const float* __restrict__ p,   // [rows, Nk], rows = batch · heads · Nq
    const float* __restrict__ dp,  // [rows, Nk]
    float* __restrict__ ds,        // [rows, Nk]
    int Nk, float scale) {
    __shared__ float per_warp[MAX_WARPS];
    const long long row = blockIdx.x;
    p += row * Nk, dp += row * Nk, ds += row * Nk;

    // ---- Pass 1: the row's sum --------------------------------------------------------------
    float sum = 0.0f;
    for (int j = threadIdx.x; j < Nk; j += blockDim.x) sum += p[j] * dp[j];
    sum = block_sum(sum, per_warp);

    // ---- Pass 2: write the gradients --------------------------------------------------------
    // A masked key has P = 0, and so has a whole row that sees no key: no gradient passes.
    for (int j = threadIdx.x; j < Nk; j += blockDim.x) ds[j] = scale * p[j] * (dp[j] - sum);
}
