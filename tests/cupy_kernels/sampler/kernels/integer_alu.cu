// Two's-complement add, subtract, multiply, logic, min, max, abs and negate, 32 and 64 bits wide.
extern "C" __global__ void integer_alu(const int* a, const int* b, const long long* c,
                                       const long long* d, unsigned* narrow, long long* wide) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i], y = b[i];
    unsigned ux = x, uy = y;
    unsigned* n = narrow + 14 * i;
    n[0] = ux + uy;
    n[1] = ux - uy;
    n[2] = ux * uy;
    n[3] = x & y;
    n[4] = x | y;
    n[5] = x ^ y;
    n[6] = ~x;
    n[7] = 0u - ux;
    n[8] = min(x, y);
    n[9] = max(x, y);
    n[10] = min(ux, uy);
    n[11] = max(ux, uy);
    n[12] = abs(x);
    n[13] = x < y ? x * 3 + y : y * 5 - x;

    long long p = c[i], q = d[i];
    unsigned long long up = p, uq = q;
    long long* w = wide + 7 * i;
    w[0] = up + uq;
    w[1] = up - uq;
    w[2] = up * uq;
    w[3] = (p & q) ^ ~(p | q);
    w[4] = min(p, q);
    w[5] = max(up, uq);
    w[6] = p < 0 ? 0ull - up : up;
}
