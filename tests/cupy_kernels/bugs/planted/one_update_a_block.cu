extern "C" __global__ void one_update_a_block(const float* x, float* total) {
    if (threadIdx.x == 0) {
        *total += x[blockIdx.x];  // BUG
    }
}
