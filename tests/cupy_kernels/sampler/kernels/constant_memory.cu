// Tables in constant memory, read with one index for all lanes and with one for each.
__constant__ int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__constant__ float weights[4] = {0.5f, -1.25f, 3e-3f, 1e20f};
__device__ const short steps[5] = {-2, -1, 0, 1, 2};

extern "C" __global__ void constant_memory(const int* a, int* out, float* scaled) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = primes[a[i] & 7] * primes[blockIdx.x & 7] + steps[a[i] % 5];
    scaled[i] = weights[a[i] & 3];
}
