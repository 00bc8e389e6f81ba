// Operands of an mma read from shared memory by ordinary loads, each lane its own numbers
// (tensor_core.cuh says which), and tiles copied through registers. `Layout::offset(row, column)`
// says where a number lies, in bytes; eight numbers of a row whose column is a multiple of 8 lie
// side by side.
#pragma once

#include "tensor_core.cuh"

template <typename T, int d, typename Layout>
struct ScalarTile {
    static constexpr int STAGES = 1, BYTES = Layout::BYTES;

    static __device__ __forceinline__ void copy(unsigned char* tile, const T* from, int left) {
        for (int i = threadIdx.x; i < 64 * d / 8; i += blockDim.x) {  // 16 bytes each
            const int row = i / (d / 8), column = i % (d / 8) * 8;
            const uint4* chunk = reinterpret_cast<const uint4*>(from + row * d + column);
            uint4* to = reinterpret_cast<uint4*>(tile + Layout::offset(row, column));
            *to = row < left ? *chunk : make_uint4(0, 0, 0, 0);
        }
    }

    static __device__ __forceinline__ void arrived() {}  // a store is there once it is made

    static __device__ __forceinline__ void load_a(uint32_t (&a)[4], const unsigned char* tile,
                                                  int row, int k) {
        const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = pair(tile, row + g + i % 2 * 8, k + 2 * c + i / 2 * 8);
    }

    static __device__ __forceinline__ void load_b(uint32_t (&b)[4], const unsigned char* tile,
                                                  int column, int k) {
        const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            b[i] = pair(tile, column + g + i / 2 * 8, k + 2 * c + i % 2 * 8);
        }
    }

    // The two numbers of a register lie in two rows here: two loads of 16 bits.
    static __device__ __forceinline__ void load_b_trans(uint32_t (&b)[4], const unsigned char* tile,
                                                        int k, int column) {
        const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = k + 2 * c + i % 2 * 8;
            b[i] = number(tile, row, column + g + i / 2 * 8) |
                   number(tile, row + 1, column + g + i / 2 * 8) << 16;
        }
    }

    static __device__ __forceinline__ uint32_t pair(const unsigned char* tile, int row,
                                                    int column) {
        return *reinterpret_cast<const uint32_t*>(tile + Layout::offset(row, column));
    }

    static __device__ __forceinline__ uint32_t number(const unsigned char* tile, int row,
                                                      int column) {
        return *reinterpret_cast<const uint16_t*>(tile + Layout::offset(row, column));
    }
};
