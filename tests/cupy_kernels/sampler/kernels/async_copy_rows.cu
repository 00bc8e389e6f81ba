// cp.async.cg of a 64 by 64 tile of halves from rows of a longer matrix, as attention loads K.
extern "C" __global__ void async_copy_rows(const int4* a, int4* out, int row_chunks) {
    __shared__ int4 tile[64 * 9];
    for (int k = threadIdx.x; k < 512; k += 128) {
        unsigned to = __cvta_generic_to_shared(tile + k / 8 * 9 + k % 8);
        const int4* from = a + (blockIdx.x * 64 + k / 8) * row_chunks + k % 8;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int k = threadIdx.x; k < 512; k += 128) {
        out[blockIdx.x * 512 + k] = tile[k / 8 * 9 + (k % 8 ^ 1)];
    }
}
