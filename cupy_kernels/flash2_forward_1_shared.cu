// FlashAttention-2 forward, step 1: tensor cores fed from plain tiles in shared memory.
//
// Right, and slow. With d = 64 a row is 128 bytes, all 32 banks once: the eight rows that a warp
// reads at a time lie in the same four banks, and every load of K takes eight turns.

#include "flash2_forward_steps.cuh"
#include "scalar_fragments.cuh"

template <int d>
struct Plain {
    static constexpr int BYTES = 64 * d * 2;
    static __device__ __forceinline__ int offset(int row, int column) {
        return (row * d + column) * 2;
    }
};

template <typename T, int d, bool causal>
__global__ void __launch_bounds__(STEP_THREADS) flash2_forward_1_shared(
    const T* __restrict__ q,  // [batch, heads, Nq, d]
    const T* __restrict__ k,  // [batch, kv_heads, Nk, d]
    const T* __restrict__ v,  // [batch, kv_heads, Nk, d]
    T* __restrict__ o,        // [batch, heads, Nq, d]
    float* __restrict__ lse,  // [batch, heads, Nq]
    int group, int Nq, int Nk, float scale) {  // group = heads / kv_heads
    using Tile = ScalarTile<T, d, Plain<d>>;
    forward_in_steps<Tile, T, d, causal>(q, k, v, o, lse, group, Nq, Nk, scale);
}
