extern "C" __global__ void shared_store_too_far(const float* a, float* out) {
    __shared__ float tile[64];
    int i = threadIdx.x;
    tile[i + 300] = a[i];  // BUG
    __syncthreads();
    out[i] = tile[i];
}
