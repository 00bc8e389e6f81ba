extern "C" __global__ void store_before_array(const int* a, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i - 1] = a[i];  // BUG
}
