// FlashAttention-2 forward, step 4: while one tile of K and V is worked on, the next is on its way.
//
// cp.async copies past the registers and does not stall the thread that started it. Two stages take
// turns, so that one barrier a step is enough: behind it tile j has arrived for all warps, and all
// warps have left the stage of tile j − 1, where tile j + 1 may go.

#include "flash2_forward_steps.cuh"
#include "scalar_fragments.cuh"
#include "swizzled_tile.cuh"

template <int d>
struct Swizzled {
    static constexpr int BYTES = 64 * d * 2;
    static __device__ __forceinline__ int offset(int row, int column) {
        return swizzle<d>(row, column / 8) + column % 8 * 2;
    }
};

template <typename T, int d>
struct AsyncTile : ScalarTile<T, d, Swizzled<d>> {
    static constexpr int STAGES = 2;

    static __device__ __forceinline__ void copy(unsigned char* tile, const T* from, int left) {
        load_tile<64, d, STEP_THREADS>(__cvta_generic_to_shared(tile), from, 0, left);
        cp_async_commit();
    }

    static __device__ __forceinline__ void arrived() { cp_async_wait<0>(); }
};

template <typename T, int d, bool causal>
__global__ void __launch_bounds__(STEP_THREADS) flash2_forward_4_double_buffered(
    const T* __restrict__ q,  // [batch, heads, Nq, d]
    const T* __restrict__ k,  // [batch, kv_heads, Nk, d]
    const T* __restrict__ v,  // [batch, kv_heads, Nk, d]
    T* __restrict__ o,        // [batch, heads, Nq, d]
    float* __restrict__ lse,  // [batch, heads, Nq]
    int group, int Nq, int Nk, float scale) {  // group = heads / kv_heads
    forward_in_steps<AsyncTile<T, d>, T, d, causal>(q, k, v, o, lse, group, Nq, Nk, scale);
}
