extern "C" __global__ void divergent_shuffle(const int* a, int* out) {
    int i = threadIdx.x, x = a[i];
    if (i < 20) {
        x += __shfl_xor_sync(0xffffffff, x, 1);  // BUG
    }
    out[i] = x;
}
