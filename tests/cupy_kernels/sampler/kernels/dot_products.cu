// dp4a and dp2a: short integer dot products added to a 32-bit accumulator.
extern "C" __global__ void dot_products(const int* a, const int* b, const int* c, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[4 * i] = __dp4a(a[i], b[i], c[i]);
    out[4 * i + 1] = __dp4a((unsigned)a[i], (unsigned)b[i], (unsigned)c[i]);
    out[4 * i + 2] = __dp2a_lo(a[i], b[i], c[i]);
    out[4 * i + 3] = __dp2a_hi(a[i], b[i], c[i]);
}
