extern "C" __global__ void overrun_through_pointer(const float* a, float* out, int n) {
    float* p = out + 32 * threadIdx.x;
    for (int k = 0; k < n; ++k) {
        *p++ = a[k];  // BUG
    }
}
