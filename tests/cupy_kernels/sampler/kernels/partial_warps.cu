// Only the lanes that are active ask for sectors: every third lane, then the first five.
extern "C" __global__ void partial_warps(const float* a, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 3 == 0) out[i] = a[i];
    if (threadIdx.x % 32 < 5) out[1024 + i] = a[2 * i];
}
