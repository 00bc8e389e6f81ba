// fma keeps every bit of the product until the one rounding at the end, in each of its modes.
extern "C" __global__ void fma_exact(const float* a, const float* b, const float* c, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[5 * i] = __fmaf_rn(a[i], b[i], c[i]);
    out[5 * i + 1] = __fmaf_rz(a[i], b[i], c[i]);
    out[5 * i + 2] = __fmaf_ru(a[i], b[i], c[i]);
    out[5 * i + 3] = __fmaf_rd(a[i], b[i], c[i]);
    out[5 * i + 4] = a[i] * b[i] + c[i];
}
