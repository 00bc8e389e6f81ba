extern "C" __global__ void null_pointer(const float* a, float* out) {
    out[threadIdx.x] = a[threadIdx.x];  // BUG
}
