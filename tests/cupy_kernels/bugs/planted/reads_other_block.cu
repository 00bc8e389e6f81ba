extern "C" __global__ void reads_other_block(const int* a, int* out) {
    int i = blockIdx.x * 32 + threadIdx.x;
    int before = blockIdx.x > 0 ? out[i - 32] : 0;  // BUG
    out[i] = a[i] + before;
}
