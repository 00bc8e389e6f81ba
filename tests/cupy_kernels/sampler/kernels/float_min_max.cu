// min and max return the operand that is a number, unless .NaN asks to pass a NaN on.
extern "C" __global__ void float_min_max(const float* a, const float* b, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float* o = out + 4 * i;
    o[0] = fminf(a[i], b[i]);
    o[1] = fmaxf(a[i], b[i]);
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(o[2]) : "f"(a[i]), "f"(b[i]));
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(o[3]) : "f"(a[i]), "f"(b[i]));
}
