// Half precision scalars: each operation rounds once to eleven bits.
#include <cuda_fp16.h>

extern "C" __global__ void half_arithmetic(const __half* a, const __half* b, const __half* c,
                                           __half* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half* o = out + 8 * i;
    o[0] = __hadd(a[i], b[i]);
    o[1] = __hsub(a[i], b[i]);
    o[2] = __hmul(a[i], b[i]);
    o[3] = __hfma(a[i], b[i], c[i]);
    o[4] = __hmin(a[i], b[i]);
    o[5] = __hmax(a[i], b[i]);
    o[6] = __hneg(__habs(a[i]));
    o[7] = __hadd_sat(a[i], b[i]);
}
