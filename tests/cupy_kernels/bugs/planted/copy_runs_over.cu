extern "C" __global__ void copy_runs_over(const float* a, float* out, int n) {
    for (int k = 4 * threadIdx.x; k < n; k += 4 * blockDim.x) {
        *reinterpret_cast<float4*>(out + k) = *reinterpret_cast<const float4*>(a + k);  // BUG
    }
}
