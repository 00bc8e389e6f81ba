// lop3 evaluates any function of three bits by an eight-bit truth table; sad adds |a - b|.
extern "C" __global__ void logic_tables(const unsigned* a, const unsigned* b, const unsigned* c,
                                        unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = a[i], y = b[i], z = c[i];
    unsigned* o = out + 5 * i;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(o[0]) : "r"(x), "r"(y), "r"(z));
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(o[1]) : "r"(x), "r"(y), "r"(z));
    asm("lop3.b32 %0, %1, %2, %3, 0x1b;" : "=r"(o[2]) : "r"(x), "r"(y), "r"(z));
    asm("sad.u32 %0, %1, %2, %3;" : "=r"(o[3]) : "r"(x), "r"(y), "r"(z));
    asm("sad.s32 %0, %1, %2, %3;" : "=r"(o[4]) : "r"(x), "r"(y), "r"(z));
}
