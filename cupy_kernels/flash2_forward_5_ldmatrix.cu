// FlashAttention-2 forward, step 5: ldmatrix.x4 brings a 16 × 16 block in one instruction.
//
// Four 32-bit loads become one, and for V, whose numbers must be transposed, eight 16-bit loads and
// four shifts. The last step, flash2_forward.cu, gives each warp 32 rows, so that every block of K
// and V that is read feeds twice the arithmetic.

#include "flash2_forward_steps.cuh"
#include "swizzled_tile.cuh"

template <typename T, int d>
struct MatrixTile {
    static constexpr int STAGES = 2, BYTES = 64 * d * 2;

    static __device__ __forceinline__ void copy(unsigned char* tile, const T* from, int left) {
        load_tile<64, d, STEP_THREADS>(__cvta_generic_to_shared(tile), from, 0, left);
        cp_async_commit();
    }

    static __device__ __forceinline__ void arrived() { cp_async_wait<0>(); }

    static __device__ __forceinline__ void load_a(uint32_t (&a)[4], const unsigned char* tile,
                                                  int row, int k) {
        ldmatrix_x4(a, down_first<d>(__cvta_generic_to_shared(tile), row, k));
    }

    static __device__ __forceinline__ void load_b(uint32_t (&b)[4], const unsigned char* tile,
                                                  int column, int k) {
        ldmatrix_x4(b, right_first<d>(__cvta_generic_to_shared(tile), column, k));
    }

    static __device__ __forceinline__ void load_b_trans(uint32_t (&b)[4], const unsigned char* tile,
                                                        int k, int column) {
        ldmatrix_x4_trans(b, down_first<d>(__cvta_generic_to_shared(tile), k, column));
    }
};

template <typename T, int d, bool causal>
__global__ void __launch_bounds__(STEP_THREADS) flash2_forward_5_ldmatrix(
    const T* __restrict__ q,  // [batch, heads, Nq, d]
    const T* __restrict__ k,  // [batch, kv_heads, Nk, d]
    const T* __restrict__ v,  // [batch, kv_heads, Nk, d]
    T* __restrict__ o,        // [batch, heads, Nq, d]
    float* __restrict__ lse,  // [batch, heads, Nq]
    int group, int Nq, int Nk, float scale) {  // group = heads / kv_heads
    forward_in_steps<MatrixTile<T, d>, T, d, causal>(q, k, v, o, lse, group, Nq, Nk, scale);
}
