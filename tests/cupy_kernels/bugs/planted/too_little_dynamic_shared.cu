extern "C" __global__ void too_little_dynamic_shared(const float* a, float* out) {
    extern __shared__ float tile[];
    int i = threadIdx.x;
    tile[i] = a[i];  // BUG
    __syncthreads();
    out[i] = tile[63 - i];
}
