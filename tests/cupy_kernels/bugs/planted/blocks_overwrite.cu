extern "C" __global__ void blocks_overwrite(const int* a, int* out) {
    out[threadIdx.x] = a[blockIdx.x * 32 + threadIdx.x];  // BUG
}
