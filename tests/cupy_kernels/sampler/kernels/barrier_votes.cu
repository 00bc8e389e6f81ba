// Barriers that also count, and, or a predicate over the block.
extern "C" __global__ void barrier_votes(const int* a, int* out) {
    int x = a[blockIdx.x * blockDim.x + threadIdx.x];
    int count = __syncthreads_count(x > 0);
    int all = __syncthreads_and(x > -50);
    int any = __syncthreads_or(x > 40);
    int* o = out + 3 * (blockIdx.x * blockDim.x + threadIdx.x);
    o[0] = count, o[1] = all != 0, o[2] = any != 0;
}
