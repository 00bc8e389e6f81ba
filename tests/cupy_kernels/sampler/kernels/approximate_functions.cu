// The special function unit: fast, and right to about 22 bits.
extern "C" __global__ void approximate_functions(const float* a, const float* angle, float* relative,
                                                 float* absolute) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i], t = angle[i];
    float* r = relative + 6 * i;
    asm("ex2.approx.f32 %0, %1;" : "=f"(r[0]) : "f"(t));
    asm("rcp.approx.f32 %0, %1;" : "=f"(r[1]) : "f"(x));
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(r[2]) : "f"(x));
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r[3]) : "f"(x));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r[4]) : "f"(-t));
    r[5] = __fdividef(t, x);
    float* e = absolute + 4 * i;
    asm("lg2.approx.f32 %0, %1;" : "=f"(e[0]) : "f"(x));
    asm("sin.approx.f32 %0, %1;" : "=f"(e[1]) : "f"(t));
    asm("cos.approx.f32 %0, %1;" : "=f"(e[2]) : "f"(t));
    asm("tanh.approx.f32 %0, %1;" : "=f"(e[3]) : "f"(t));
}
