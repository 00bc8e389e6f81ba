extern "C" __global__ void null_pointer(const float* a, float* out, int use_a) {
    const float* p = use_a ? a : nullptr;
    out[threadIdx.x] = p[threadIdx.x];  // BUG
}
