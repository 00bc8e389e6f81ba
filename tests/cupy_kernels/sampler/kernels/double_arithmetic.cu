// Double precision: arithmetic, rounding modes, comparison, and conversions to and from float.
extern "C" __global__ void double_arithmetic(const double* a, const double* b, double* out,
                                             float* narrow) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = a[i], y = b[i];
    double* o = out + 10 * i;
    o[0] = __dadd_rn(x, y);
    o[1] = __dmul_rn(x, y);
    o[2] = __fma_rn(x, y, x);
    o[3] = __ddiv_rn(x, y);
    o[4] = __dsqrt_rn(fabs(x));
    o[5] = fmin(x, y);
    o[6] = fmax(x, y);
    o[7] = floor(x) + (x < y ? 1.0 : 2.0);
    o[8] = (double)__double2int_rz(x);
    o[9] = -fabs(y);
    narrow[3 * i] = __double2float_rn(x);
    narrow[3 * i + 1] = __double2float_rz(x);
    narrow[3 * i + 2] = (float)(x * y);
}
