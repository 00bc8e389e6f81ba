extern "C" __global__ void add(const float* a, const float* b, float* c, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // BEGIN SOLUTION
    if (i < N) {
        c[i] = a[i] + b[i];
    }
    // END SOLUTION
}
