// float to e4m3 and e5m2: nearest even, held at the largest finite number, NaN kept.
#include <cuda_fp8.h>

extern "C" __global__ void fp8_encode(const float* a, unsigned char* e4m3, unsigned char* e5m2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    e4m3[i] = __nv_cvt_float_to_fp8(a[i], __NV_SATFINITE, __NV_E4M3);
    e5m2[i] = __nv_cvt_float_to_fp8(a[i], __NV_SATFINITE, __NV_E5M2);
}
