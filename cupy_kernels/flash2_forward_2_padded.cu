// FlashAttention-2 forward, step 2: eight unused numbers behind each row.
//
// A row now starts four banks further than the row above it, so that eight rows of four words cover
// all 32 banks: no conflict. The price is shared memory, 1/8 more with d = 64.

#include "flash2_forward_steps.cuh"
#include "scalar_fragments.cuh"

template <int d>
struct Padded {
    static constexpr int PITCH = d + 8, BYTES = 64 * PITCH * 2;
    static __device__ __forceinline__ int offset(int row, int column) {
        return (row * PITCH + column) * 2;
    }
};

template <typename T, int d, bool causal>
__global__ void __launch_bounds__(STEP_THREADS) flash2_forward_2_padded(
    const T* __restrict__ q,  // [batch, heads, Nq, d]
    const T* __restrict__ k,  // [batch, kv_heads, Nk, d]
    const T* __restrict__ v,  // [batch, kv_heads, Nk, d]
    T* __restrict__ o,        // [batch, heads, Nq, d]
    float* __restrict__ lse,  // [batch, heads, Nq]
    int group, int Nq, int Nk, float scale) {  // group = heads / kv_heads
    using Tile = ScalarTile<T, d, Padded<d>>;
    forward_in_steps<Tile, T, d, causal>(q, k, v, o, lse, group, Nq, Nk, scale);
}
