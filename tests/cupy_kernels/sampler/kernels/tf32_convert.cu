// tf32 keeps ten bits after the point; rna rounds ties away from zero.
extern "C" __global__ void tf32_convert(const float* a, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out[2 * i]) : "f"(a[i]));
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(out[2 * i + 1]) : "f"(a[i]));
}
