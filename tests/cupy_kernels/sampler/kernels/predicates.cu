// Predicates combined in setp, written in pairs, negated, turned into numbers and used as guards.
extern "C" __global__ void predicates(const int* a, const int* b, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int both, either, guarded = -1, chosen;
    asm("{ .reg .pred p, q, r, s;\n\t"
        "setp.lt.s32 p, %4, %5;\n\t"
        "setp.gt.and.s32 q|r, %4, 0, p;\n\t"
        "setp.eq.or.u32 s, %5, 3, !p;\n\t"
        "selp.s32 %0, 1, 0, q;\n\t"
        "@r add.s32 %0, %0, 10;\n\t"
        "xor.pred q, p, s;\n\t"
        "selp.s32 %1, 5, 7, q;\n\t"
        "@!s mov.s32 %2, %4;\n\t"
        "not.pred r, s;\n\t"
        "@r add.s32 %2, %2, 100;\n\t"
        "slct.s32.s32 %3, %4, %5, %5; }"
        : "=r"(both), "=r"(either), "+r"(guarded), "=r"(chosen)
        : "r"(a[i]), "r"(b[i]));
    out[4 * i] = both, out[4 * i + 1] = either, out[4 * i + 2] = guarded, out[4 * i + 3] = chosen;
}
