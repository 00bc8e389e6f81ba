// FlashAttention-2, backward, before and after the main kernel: what it needs of every row of
// queries, and its dQ in its final form.
//
//   D = rowsum(dO ∘ O) = rowsum(P ∘ dP), so that dS = P ∘ (dP − D) needs no second pass over a row.

#include "query_gradients.cuh"
#include "tensor_core.cuh"
#include "warp_reduce.cuh"

#define LOG2_E 1.4426950408889634f

__device__ __forceinline__ float2 unpack(const __half* pair) {
    return __half22float2(*reinterpret_cast<const __half2*>(pair));
}

__device__ __forceinline__ float2 unpack(const __nv_bfloat16* pair) {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(pair));
}

// One warp a row, rows rounded up to whole tiles: D, LSE · log2 e, and zeros for dQ to be added to.
//
//   grid  (⌈rows / 4⌉, batch · heads)      block (128)
template <typename T, int d, int Br>
__global__ void flash2_backward_prepare(
    const T* __restrict__ o,        // [batch, heads, Nq, d]
    const T* __restrict__ dO,       // [batch, heads, Nq, d]
    const float* __restrict__ lse,  // [batch, heads, Nq]
    float* __restrict__ row_values, // [batch, heads, row tiles, 2, Br]: LSE · log2 e, D
    float* __restrict__ dq_sums,    // [batch, heads, rows, d]
    int Nq, int rows) {
    const int row = blockIdx.x * 4 + threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    if (row >= rows) return;
    const long long padded_row = (long long)blockIdx.y * rows + row;
    for (int c = lane * 2; c < d; c += 2 * WARP_SIZE) {
        *reinterpret_cast<float2*>(dq_sums + padded_row * d + c) = make_float2(0.0f, 0.0f);
    }

    // A row that is not there, or sees no key, has P = e^(S − ∞) = 0.
    float dots = 0.0f, shift = INFINITY;
    if (row < Nq) {
        const long long i = (long long)blockIdx.y * Nq + row;
        for (int c = lane * 2; c < d; c += 2 * WARP_SIZE) {
            const float2 x = unpack(o + i * d + c), y = unpack(dO + i * d + c);
            dots += x.x * y.x + x.y * y.y;
        }
        dots = warp_sum(dots);
        if (lse[i] != -INFINITY) shift = lse[i] * LOG2_E;
    }
    row_values += (padded_row / Br * 2) * Br + padded_row % Br;
    if (lane == 0) row_values[0] = shift, row_values[Br] = dots;
}

// dQ = scale · sums, rounded, from the order of the accumulators to rows.
//
//   grid  (rows / Br, batch · heads, d / D)      block (32 · WARPS)
template <typename T, int d, int D, int Br, int WARPS>
__global__ void flash2_backward_finish(
    const float* __restrict__ dq_sums,  // [batch, heads, row tiles, d / D, Br · D]
    T* __restrict__ dq,                 // [batch, heads, Nq, d]
    int Nq, float scale) {
    using Share = QueryGradients<D, Br, WARPS>;
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
    const long long tile = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    dq_sums += (tile * gridDim.z + blockIdx.z) * Br * D + Share::start();
#pragma unroll
    for (int t = 0; t < Share::M; ++t) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int row = blockIdx.x * Br + Share::row() + 16 * t + 8 * r + g;
            if (row >= Nq) continue;
            T* to = dq + ((long long)blockIdx.y * Nq + row) * d + blockIdx.z * D + Share::column();
#pragma unroll
            for (int n = 0; n < Share::N; ++n) {
                const float low = dq_sums[Share::offset(t, n, 2 * r)];
                const float high = dq_sums[Share::offset(t, n, 2 * r + 1)];
                uint32_t* pair = reinterpret_cast<uint32_t*>(to + 8 * n + 2 * c);
                *pair = pack<T>(low * scale, high * scale);
            }
        }
    }
}
