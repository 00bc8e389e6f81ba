// A histogram in shared memory, then one atomic a bin into global memory.
extern "C" __global__ void shared_atomics(const int* a, int* histogram, float* total) {
    __shared__ int bins[16];
    __shared__ float sum;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    if (threadIdx.x == 0) sum = 0.0f;
    __syncthreads();
    atomicAdd(&bins[a[i] & 15], 1);
    atomicAdd(&sum, (float)a[i]);
    atomicMax(&bins[15], 2);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(histogram + threadIdx.x, bins[threadIdx.x]);
    if (threadIdx.x == 0) atomicAdd(total, sum);
}
