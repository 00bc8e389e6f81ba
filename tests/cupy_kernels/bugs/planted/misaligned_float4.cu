extern "C" __global__ void misaligned_float4(const float* a, float4* out) {
    int i = threadIdx.x;
    out[i] = *reinterpret_cast<const float4*>(a + 4 * i + 1);  // BUG
}
