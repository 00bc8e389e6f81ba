// FlashAttention-2 forward, step 3: no padding; the 16-byte chunks of each row trade places
// instead.
//
// As free of conflicts as padding, in less shared memory, and the tile stays what ldmatrix and
// cp.async like: rows of whole chunks at aligned addresses.

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

template <typename T, int d, bool causal>
__global__ void __launch_bounds__(STEP_THREADS) flash2_forward_3_swizzled(
    const T* __restrict__ q,  // [batch, heads, Nq, d]
    const T* __restrict__ k,  // [batch, kv_heads, Nk, d]
    const T* __restrict__ v,  // [batch, kv_heads, Nk, d]
    T* __restrict__ o,        // [batch, heads, Nq, d]
    float* __restrict__ lse,  // [batch, heads, Nq]
    int group, int Nq, int Nk, float scale) {  // group = heads / kv_heads
    using Tile = ScalarTile<T, d, Swizzled<d>>;
    forward_in_steps<Tile, T, d, causal>(q, k, v, o, lse, group, Nq, Nk, scale);
}
