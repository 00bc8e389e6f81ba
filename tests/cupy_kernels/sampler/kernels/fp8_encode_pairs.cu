// Two floats, or two halves, packed into two codes: the first operand becomes the upper byte.
extern "C" __global__ void fp8_encode_pairs(const float2* a, const unsigned* halves,
                                            unsigned short* e4m3, unsigned short* e5m2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float2 p = a[i];
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(e4m3[2 * i]) : "f"(p.y), "f"(p.x));
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(e5m2[2 * i]) : "f"(p.y), "f"(p.x));
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(e4m3[2 * i + 1]) : "r"(halves[i]));
    asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(e5m2[2 * i + 1]) : "r"(halves[i]));
}
