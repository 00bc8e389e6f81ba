// A block of 45 threads: the second warp has thirteen lanes.
extern "C" __global__ void ragged_block(const int* a, int* out) {
    __shared__ int tile[45];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = a[i];
    __syncthreads();
    out[i] = tile[44 - threadIdx.x] * 100 + threadIdx.x % 32;
}
