// Integer to narrower integer: plain cvt drops bits, cvt.sat clamps; cvt.sat.f32 clamps to [0, 1].
extern "C" __global__ void narrowing_convert(const int* a, const float* f, int* out, float* clamped) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i];
    int* o = out + 6 * i;
    o[0] = (signed char)x;
    o[1] = (unsigned char)x;
    o[2] = (short)x;
    asm("cvt.sat.s8.s32 %0, %1;" : "=r"(o[3]) : "r"(x));
    asm("cvt.sat.u8.s32 %0, %1;" : "=r"(o[4]) : "r"(x));
    short h;
    asm("cvt.sat.u16.s32 %0, %1;" : "=h"(h) : "r"(x));
    o[5] = (unsigned short)h;
    clamped[2 * i] = __saturatef(f[i]);
    clamped[2 * i + 1] = truncf(f[i]) + floorf(f[i]) * 2 + ceilf(f[i]) * 4 + rintf(f[i]) * 8;
}
