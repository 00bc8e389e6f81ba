// .ftz treats subnormal inputs as zero and flushes subnormal results, keeping the sign.
extern "C" __global__ void flush_to_zero(const float* a, const float* b, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i], y = b[i];
    float* o = out + 7 * i;
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(o[0]) : "f"(x), "f"(y));
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(o[1]) : "f"(x), "f"(y));
    asm("fma.rn.ftz.f32 %0, %1, %2, %1;" : "=f"(o[2]) : "f"(x), "f"(y));
    asm("max.ftz.f32 %0, %1, %2;" : "=f"(o[3]) : "f"(x), "f"(y));
    asm("add.f32 %0, %1, %2;" : "=f"(o[4]) : "f"(x), "f"(y));
    asm("mul.f32 %0, %1, %2;" : "=f"(o[5]) : "f"(x), "f"(y));
    asm("sub.ftz.sat.f32 %0, %1, %2;" : "=f"(o[6]) : "f"(x), "f"(y));
}
