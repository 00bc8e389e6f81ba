// Naive attention, kernel 2 of 3: P = softmax(S) along each row, and LSE = log Σ exp(S).
//
// One block owns one row and reads it three times from HBM: for its maximum m, for the sum l of
// exp(S − m), and to write P. Subtracting m keeps every exponential at or below 1.
//
//   grid  (batch · heads · Nq)      block (128)

#include "warp_reduce.cuh"

#define MAX_WARPS 32

extern "C" __global__ void naive_softmax(
    const float* __restrict__ s,  // [rows, Nk], rows = batch · heads · Nq
    float* __restrict__ p,        // [rows, Nk]
    float* __restrict__ lse,      // [rows]
    int Nk) {
    __shared__ float per_warp[MAX_WARPS];
    const long long row = blockIdx.x;
    s += row * Nk;
    p += row * Nk;

    // ---- Pass 1: the row's maximum m --------------------------------------------------------
    // Neighbouring threads take neighbouring keys in all three passes: 4 sectors a warp request.
    float m = -INFINITY;
    // BEGIN SOLUTION
    for (int j = threadIdx.x; j < Nk; j += blockDim.x) m = fmaxf(m, s[j]);
    // END SOLUTION

    m = block_max(m, per_warp);

    // A row with no visible key has m = −∞, and −∞ − (−∞) would be NaN: shift by 0 instead.
    const float shift = m == -INFINITY ? 0.0f : m;

    // ---- Pass 2: the denominator l ----------------------------------------------------------
    float l = 0.0f;
    // BEGIN SOLUTION
    for (int j = threadIdx.x; j < Nk; j += blockDim.x) l += expf(s[j] - shift);
    // END SOLUTION

    l = block_sum(l, per_warp);

    // ---- Pass 3: write the probabilities ----------------------------------------------------
    // l is 0 only for a fully masked row: its probabilities, and with them O, are 0.
    const float inverse = l > 0.0f ? 1.0f / l : 0.0f;
    // BEGIN SOLUTION
    for (int j = threadIdx.x; j < Nk; j += blockDim.x) p[j] = expf(s[j] - shift) * inverse;
    // END SOLUTION

    // ---- One thread stores the LSE ----------------------------------------------------------
    // l = 0 gives −∞, which is right for a fully masked row.
    // BEGIN SOLUTION
    if (threadIdx.x == 0) lse[row] = m + logf(l);
    // END SOLUTION
}
