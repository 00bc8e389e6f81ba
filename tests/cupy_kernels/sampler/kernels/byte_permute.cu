// prmt: four bytes picked from eight by selector nibbles, sign replication, and its six modes.
extern "C" __global__ void byte_permute(const unsigned* a, const unsigned* b,
                                        const unsigned* selector, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = a[i], y = b[i], s = selector[i];
    unsigned* o = out + 7 * i;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(o[0]) : "r"(x), "r"(y), "r"(s));
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(o[1]) : "r"(x), "r"(y), "r"(s));
    asm("prmt.b32.b4e %0, %1, %2, %3;" : "=r"(o[2]) : "r"(x), "r"(y), "r"(s));
    asm("prmt.b32.rc8 %0, %1, %2, %3;" : "=r"(o[3]) : "r"(x), "r"(y), "r"(s));
    asm("prmt.b32.ecl %0, %1, %2, %3;" : "=r"(o[4]) : "r"(x), "r"(y), "r"(s));
    asm("prmt.b32.ecr %0, %1, %2, %3;" : "=r"(o[5]) : "r"(x), "r"(y), "r"(s));
    asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(o[6]) : "r"(x), "r"(y), "r"(s));
}
