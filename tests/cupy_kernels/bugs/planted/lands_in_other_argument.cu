extern "C" __global__ void lands_in_other_argument(const float* a, const float* b, float* out, long long step) {
    out[threadIdx.x] = b[threadIdx.x] + a[threadIdx.x + step];  // BUG
}
