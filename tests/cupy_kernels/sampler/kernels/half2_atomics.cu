// Atomic sums of packed halves, half2 and bfloat162.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half2_atomics(const __half2* a, const __nv_bfloat162* b, __half2* half_sums,
                                         __nv_bfloat162* bfloat_sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(half_sums + (i & 1), a[i]);
    atomicAdd(bfloat_sums + (i & 1), b[i]);
}
