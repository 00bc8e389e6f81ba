// Two halves in one register: packed arithmetic, comparison, and swapping the two.
#include <cuda_fp16.h>

extern "C" __global__ void half2_arithmetic(const __half2* a, const __half2* b, const __half2* c,
                                            __half2* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half2* o = out + 9 * i;
    o[0] = __hadd2(a[i], b[i]);
    o[1] = __hsub2(a[i], b[i]);
    o[2] = __hmul2(a[i], b[i]);
    o[3] = __hfma2(a[i], b[i], c[i]);
    o[4] = __hmax2(a[i], b[i]);
    o[5] = __heq2(a[i], c[i]);
    o[6] = __hgt2(a[i], b[i]);
    o[7] = __lowhigh2highlow(a[i]);
    o[8] = __hfma2_relu(a[i], b[i], c[i]);
}
