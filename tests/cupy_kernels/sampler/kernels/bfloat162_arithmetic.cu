// Two bfloat16 in one register: packed arithmetic and comparison.
#include <cuda_bf16.h>

extern "C" __global__ void bfloat162_arithmetic(const __nv_bfloat162* a, const __nv_bfloat162* b,
                                                const __nv_bfloat162* c, __nv_bfloat162* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __nv_bfloat162* o = out + 6 * i;
    o[0] = __hadd2(a[i], b[i]);
    o[1] = __hsub2(a[i], b[i]);
    o[2] = __hmul2(a[i], b[i]);
    o[3] = __hfma2(a[i], b[i], c[i]);
    o[4] = __hmax2(a[i], b[i]);
    o[5] = __hgt2(a[i], b[i]);
}
