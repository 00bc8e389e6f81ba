// The last block to finish adds up what all blocks wrote: fence, then count.
extern "C" __global__ void fenced_counter(const int* a, int* partial, unsigned* arrived, int* total) {
    __shared__ bool last;
    int sum = a[blockIdx.x * 32 + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x == 0) {
        atomicExch(partial + blockIdx.x, sum);
        __threadfence();
        last = atomicAdd(arrived, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) atomicAdd(total, atomicAdd(partial + threadIdx.x, 0));
}
