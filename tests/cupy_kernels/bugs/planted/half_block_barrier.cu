extern "C" __global__ void half_block_barrier(const int* a, int* out) {
    __shared__ int tile[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = a[16 * y + x];
    if (y < 8) {
        __syncthreads();  // BUG
        out[16 * y + x] = tile[y][15 - x];
    }
    __syncthreads();
    out[16 * y + x] += tile[15 - y][x];
}
