// float to bfloat16 in four roundings and packed, and back.
#include <cuda_bf16.h>

extern "C" __global__ void bfloat16_conversions(const float* a, __nv_bfloat16* narrow, float* wide) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __nv_bfloat16* o = narrow + 6 * i;
    o[0] = __float2bfloat16_rn(a[i]);
    o[1] = __float2bfloat16_rz(a[i]);
    o[2] = __float2bfloat16_ru(a[i]);
    o[3] = __float2bfloat16_rd(a[i]);
    *reinterpret_cast<__nv_bfloat162*>(o + 4) = __floats2bfloat162_rn(a[i], -a[i]);
    wide[i] = __bfloat162float(o[1]);
}
