// bfloat16 scalars: float32's range with eight bits of precision.
#include <cuda_bf16.h>

extern "C" __global__ void bfloat16_arithmetic(const __nv_bfloat16* a, const __nv_bfloat16* b,
                                               const __nv_bfloat16* c, __nv_bfloat16* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __nv_bfloat16* o = out + 7 * i;
    o[0] = __hadd(a[i], b[i]);
    o[1] = __hsub(a[i], b[i]);
    o[2] = __hmul(a[i], b[i]);
    o[3] = __hfma(a[i], b[i], c[i]);
    o[4] = __hmin(a[i], b[i]);
    o[5] = __hmax(a[i], b[i]);
    o[6] = __hneg(__habs(a[i]));
}
