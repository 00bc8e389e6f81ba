// Every e4m3 and e5m2 code, decoded to half.
#include <cuda_fp8.h>

extern "C" __global__ void fp8_decode(const unsigned char* code, __half* e4m3, __half* e5m2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    e4m3[i] = __nv_cvt_fp8_to_halfraw(code[i], __NV_E4M3);
    e5m2[i] = __nv_cvt_fp8_to_halfraw(code[i], __NV_E5M2);
}
