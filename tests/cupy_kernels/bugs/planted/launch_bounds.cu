extern "C" __global__ void __launch_bounds__(64) launch_bounds(int* out) {  // BUG
    out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
}
