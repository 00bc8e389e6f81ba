// Correct: threads that have returned do not hold up a barrier.
extern "C" __global__ void early_return(const int* a, int* out, int n) {
    __shared__ int tile[96];
    int i = threadIdx.x;
    if (i >= n) return;
    tile[i] = a[i];
    __syncthreads();
    out[i] = tile[n - 1 - i];
}
