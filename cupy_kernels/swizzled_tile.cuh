// A tile of 16-bit numbers in shared memory: [rows][d], no padding, its 16-byte chunks swizzled.
//
// ldmatrix reads eight 16-byte rows at a time. Plain rows of 128 bytes lie in the same four banks,
// eight rows on top of each other: an eight-way conflict. Here chunk c of row r is stored in place
// c ^ (r % 8), so that the same column of eight neighbouring rows covers all 32 banks.
#pragma once

#include "async_copy.cuh"
#include "tensor_core.cuh"

// Offset in bytes of a chunk of 8 numbers. Chunks trade places in groups of 128 bytes; where a row
// is no multiple of that (d = 32, 96), in groups of 64, as two rows then share a line of banks.
template <int d>
__device__ __forceinline__ int swizzle(int row, int chunk) {
    constexpr int GROUP = d % 64 == 0 ? 8 : 4;
    const int mix = (GROUP == 8 ? row : row / 2) % GROUP;
    return row * d * 2 + chunk / GROUP * GROUP * 16 + (chunk % GROUP ^ mix) * 16;
}

// threadIdx.x, read anew at every call: what is computed from it is not kept in registers across a
// loop whose accumulators need them all.
__device__ __forceinline__ int reread_thread_index() {
    int index;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    return index;
}

// Start copying `rows` rows of `from`, from row `first` on; from the row that is `left` further on
// there are zeros. Rows follow each other in HBM: chunk i of the tile is chunk i behind its first.
template <int rows, int d, int THREADS, typename T>
__device__ __forceinline__ void load_tile(uint32_t tile, const T* from, int first, int left) {
    constexpr int CHUNKS = d / 8;
    static_assert(rows * CHUNKS % THREADS == 0, "every thread copies the same number of chunks");
    const int mine = reread_thread_index(), chunks_left = left * CHUNKS - mine;
    from += (long long)first * d + mine * 8;
    // Eight rows further down the swizzle repeats: one address then serves all of the thread's
    // copies.
    constexpr bool REPEATS = THREADS % (8 * CHUNKS) == 0;
    tile += REPEATS ? swizzle<d>(mine / CHUNKS, mine % CHUNKS) : 0;
#pragma unroll
    for (int i = 0; i < rows * CHUNKS; i += THREADS) {
        const int at = REPEATS ? i * 16 : swizzle<d>((i + mine) / CHUNKS, (i + mine) % CHUNKS);
        cp_async_16(tile + at, from + i * 8, i < chunks_left);
    }
}

// ---- Blocks of a tile ------------------------------------------------------------------------
// ldmatrix takes a 16 × 16 block as four 8 × 8 matrices, one row address a lane. The matrices of A
// and of a transposed B go down first, then right; those of B and of a transposed A right first.

__device__ __forceinline__ int lane_id() { return threadIdx.x % 32; }

// This lane's address for the block at (row, column), both multiples of 16, matrices down first.
template <int d>
__device__ __forceinline__ uint32_t down_first(uint32_t tile, int row, int column) {
    return tile + swizzle<d>(row + lane_id() % 16, column / 8 + lane_id() / 16);
}

// The same, matrices right first.
template <int d>
__device__ __forceinline__ uint32_t right_first(uint32_t tile, int row, int column) {
    return tile + swizzle<d>(row + lane_id() / 16 * 8 + lane_id() % 8,
                             column / 8 + lane_id() / 8 % 2);
}

// That address moved by `rows` (a multiple of 8) and `columns`. Within a group of chunks adding is
// an exclusive or, as long as the block moved from starts where those bits of the column are 0: one
// register and one instruction, where every address by itself would fill the registers.
template <int d>
__device__ __forceinline__ uint32_t moved(uint32_t address, int rows, int columns) {
    constexpr int GROUP = d % 64 == 0 ? 64 : 32;  // columns
    return (address ^ (columns % GROUP * 2)) + columns / GROUP * GROUP * 2 + rows * d * 2;
}
