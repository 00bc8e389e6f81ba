extern "C" __global__ void lost_update(const float* x, float* total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    *total += x[i];  // BUG
}
