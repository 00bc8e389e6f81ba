// Some lanes return before the barrier; the others still pass it and read what they wrote.
extern "C" __global__ void early_return(const int* a, int* out, int n) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = a[i];
    if (i >= n) return;
    __syncthreads();
    out[i] = tile[n - 1 - i];
}
