// A 96-bit sum and difference: the carry of one instruction is an input of the next.
extern "C" __global__ void carry_chain(const unsigned* a, const unsigned* b, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned *x = a + 3 * i, *y = b + 3 * i;
    unsigned s0, s1, s2, d0, d1, d2;
    asm("add.cc.u32 %0, %3, %6;\n\t"
        "addc.cc.u32 %1, %4, %7;\n\t"
        "addc.u32 %2, %5, %8;"
        : "=r"(s0), "=r"(s1), "=r"(s2)
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(y[0]), "r"(y[1]), "r"(y[2]));
    asm("sub.cc.u32 %0, %3, %6;\n\t"
        "subc.cc.u32 %1, %4, %7;\n\t"
        "subc.u32 %2, %5, %8;"
        : "=r"(d0), "=r"(d1), "=r"(d2)
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(y[0]), "r"(y[1]), "r"(y[2]));
    unsigned* o = out + 6 * i;
    o[0] = s0, o[1] = s1, o[2] = s2, o[3] = d0, o[4] = d1, o[5] = d2;
}
