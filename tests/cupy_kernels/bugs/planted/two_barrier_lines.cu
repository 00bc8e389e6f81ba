extern "C" __global__ void two_barrier_lines(const int* a, int* out) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = a[i];
    if (i < 32) {
        tile[i] += 2;
        __syncthreads();  // BUG
        out[i] = tile[63 - i];
    } else {
        __syncthreads();  // OTHER
        out[i] = -tile[63 - i];
    }
}
