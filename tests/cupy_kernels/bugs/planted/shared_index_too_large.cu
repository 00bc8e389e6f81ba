extern "C" __global__ void shared_index_too_large(const float* a, float* out) {
    __shared__ float tile[64];
    int i = threadIdx.x;
    tile[i] = a[i];
    __syncthreads();
    out[i] = tile[i + (i >= 60 ? 4 : 0)];  // BUG
}
