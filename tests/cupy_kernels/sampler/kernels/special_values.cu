// What the special function unit makes of zeros, infinities, NaN and subnormal numbers.
extern "C" __global__ void special_values(const float* a, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
    float* o = out + 8 * i;
    asm("ex2.approx.f32 %0, %1;" : "=f"(o[0]) : "f"(x));
    asm("lg2.approx.f32 %0, %1;" : "=f"(o[1]) : "f"(x));
    asm("rcp.approx.f32 %0, %1;" : "=f"(o[2]) : "f"(x));
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(o[3]) : "f"(x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(o[4]) : "f"(x));
    asm("sqrt.rn.f32 %0, %1;" : "=f"(o[5]) : "f"(x));
    asm("neg.f32 %0, %1;" : "=f"(o[6]) : "f"(x));
    asm("abs.f32 %0, %1;" : "=f"(o[7]) : "f"(x));
}
