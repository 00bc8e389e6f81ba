extern "C" __global__ void traps(const int* a, int* out) {
    int i = threadIdx.x;
    if (a[i] == 7) __trap();  // BUG
    out[i] = a[i];
}
