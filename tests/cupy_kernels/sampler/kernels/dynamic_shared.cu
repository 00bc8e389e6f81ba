// Shared memory whose size the launch decides, cut into two arrays of different types.
extern "C" __global__ void dynamic_shared(const int* a, double* out, int n) {
    extern __shared__ __align__(16) unsigned char pool[];
    double* sums = reinterpret_cast<double*>(pool);
    int* values = reinterpret_cast<int*>(sums + n);
    int i = threadIdx.x;
    values[i] = a[blockIdx.x * n + i];
    __syncthreads();
    double sum = 0;
#pragma unroll 1
    for (int k = 0; k <= i; ++k) sum += values[k];
    sums[i] = sum;
    __syncthreads();
    out[blockIdx.x * n + i] = sums[n - 1 - i];
}
