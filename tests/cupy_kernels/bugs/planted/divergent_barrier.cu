extern "C" __global__ void divergent_barrier(const int* a, int* out) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = a[i];
    if (a[i] > 0) {
        __syncthreads();  // BUG
        tile[i] += 1;
    }
    out[i] = tile[i];
}
