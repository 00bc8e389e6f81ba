// Two codes at a time, as the hardware does it.
extern "C" __global__ void fp8_decode_pairs(const unsigned short* codes, unsigned* e4m3,
                                            unsigned* e5m2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(e4m3[i]) : "h"(codes[i]));
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(e5m2[i]) : "h"(codes[i]));
}
