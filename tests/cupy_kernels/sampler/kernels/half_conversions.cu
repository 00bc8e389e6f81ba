// float to half in four roundings and packed, half to float, and integers to and from half.
#include <cuda_fp16.h>

extern "C" __global__ void half_conversions(const float* a, const __half* h, __half* narrow,
                                            float* wide, int* whole) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half* o = narrow + 6 * i;
    o[0] = __float2half_rn(a[i]);
    o[1] = __float2half_rz(a[i]);
    o[2] = __float2half_ru(a[i]);
    o[3] = __float2half_rd(a[i]);
    *reinterpret_cast<__half2*>(o + 4) = __floats2half2_rn(a[i], -a[i]);
    wide[i] = __half2float(h[i]);
    whole[3 * i] = __half2int_rn(h[i]);
    whole[3 * i + 1] = __half2int_rz(h[i]);
    whole[3 * i + 2] = __half_as_ushort(__int2half_rn(i * 257 - 8192));
}
