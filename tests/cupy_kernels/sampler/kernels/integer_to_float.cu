// Integers become floats under each rounding; 64-bit integers lose bits even as doubles.
extern "C" __global__ void integer_to_float(const int* a, const long long* b, float* out,
                                            double* wide_out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float* o = out + 8 * i;
    o[0] = __int2float_rn(a[i]);
    o[1] = __int2float_rz(a[i]);
    o[2] = __int2float_ru(a[i]);
    o[3] = __int2float_rd(a[i]);
    o[4] = __uint2float_rn(a[i]);
    o[5] = __ll2float_rn(b[i]);
    o[6] = __ull2float_rn(b[i]);
    o[7] = (float)(unsigned char)a[i];
    wide_out[3 * i] = __int2double_rn(a[i]);
    wide_out[3 * i + 1] = __ll2double_rn(b[i]);
    wide_out[3 * i + 2] = __ull2double_rn(b[i]);
}
