extern "C" __global__ void misaligned_shared(const float* a, float2* out) {
    __shared__ __align__(16) float tile[66];
    int i = threadIdx.x;
    tile[i] = a[i], tile[33 + i] = a[i];
    __syncthreads();
    out[i] = *reinterpret_cast<const float2*>(tile + 2 * i + 1);  // BUG
}
