// Population count, leading zeros, bit reversal and the position of the first set bit.
extern "C" __global__ void bit_counts(const unsigned* a, const unsigned long long* b, int* out,
                                      unsigned long long* reversed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = a[i];
    unsigned long long y = b[i];
    int* o = out + 10 * i;
    o[0] = __popc(x);
    o[1] = __clz(x);
    o[2] = __brev(x);
    o[3] = __ffs(x);
    o[4] = __popcll(y);
    o[5] = __clzll(y);
    o[6] = __ffsll(y);
    asm("bfind.u32 %0, %1;" : "=r"(o[7]) : "r"(x));
    asm("bfind.s32 %0, %1;" : "=r"(o[8]) : "r"(x));
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(o[9]) : "r"(x));
    reversed[i] = __brevll(y);
}
