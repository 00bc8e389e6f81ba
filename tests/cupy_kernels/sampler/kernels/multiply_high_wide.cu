// The upper half of a product, and products twice as wide as their factors.
extern "C" __global__ void multiply_high_wide(const int* a, const int* b, const long long* c,
                                              const long long* d, int* high, long long* wide) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i], y = b[i];
    high[4 * i] = __mulhi(x, y);
    high[4 * i + 1] = __umulhi(x, y);
    asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(high[4 * i + 2]) : "r"(x), "r"(y), "r"(17));
    high[4 * i + 3] = __mul24(x & 0xffff, y & 0xff);

    long long* w = wide + 6 * i;
    w[0] = (long long)x * y;
    w[1] = (unsigned long long)(unsigned)x * (unsigned)y;
    w[2] = (long long)x * y + c[i];
    w[3] = __mul64hi(c[i], d[i]);
    w[4] = __umul64hi(c[i], d[i]);
    asm("mul.wide.u16 %0, %1, %2;" : "=r"(x) : "h"((short)a[i]), "h"((short)b[i]));
    w[5] = (unsigned)x;
}
