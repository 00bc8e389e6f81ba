// Quotients truncate towards zero and remainders take the dividend's sign, 32 and 64 bits wide.
extern "C" __global__ void integer_division(const int* a, const int* b, const long long* c,
                                            const long long* d, int* out, long long* wide_out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int* o = out + 6 * i;
    o[0] = a[i] / b[i];
    o[1] = a[i] % b[i];
    o[2] = (unsigned)a[i] / (unsigned)b[i];
    o[3] = (unsigned)a[i] % (unsigned)b[i];
    o[4] = a[i] / 7;
    o[5] = (unsigned)a[i] % 48u;
    wide_out[4 * i] = c[i] / d[i];
    wide_out[4 * i + 1] = c[i] % d[i];
    wide_out[4 * i + 2] = (unsigned long long)c[i] / (unsigned long long)d[i];
    wide_out[4 * i + 3] = (unsigned long long)c[i] % (unsigned long long)d[i];
}
