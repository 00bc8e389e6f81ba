extern "C" __global__ void column_never_written(const float* a, float* out) {
    __shared__ float tile[8][8];
    int x = threadIdx.x, y = threadIdx.y;
    if (x != 3) tile[y][x] = a[8 * y + x];
    __syncthreads();
    out[8 * y + x] = tile[x][y];  // BUG
}
