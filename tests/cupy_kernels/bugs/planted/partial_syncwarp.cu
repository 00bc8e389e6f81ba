extern "C" __global__ void partial_syncwarp(const int* a, int* out) {
    __shared__ int tile[32];
    int i = threadIdx.x;
    tile[i] = a[i];
    if (i < 16) {
        __syncwarp(0x0000ffff);
        out[i] = tile[i + 16];  // BUG
    }
}
