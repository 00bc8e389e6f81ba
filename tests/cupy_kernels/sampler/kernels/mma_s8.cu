// One m16n8k32 product of signed bytes a block, summed in 32-bit integers.
extern "C" __global__ void mma_s8(const uint4* A, const uint2* B, const int4* C, int4* D) {
    int i = blockIdx.x * 32 + threadIdx.x;
    uint4 a = A[i];
    uint2 b = B[i];
    int4 c = C[i];
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
        " {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c.x), "+r"(c.y), "+r"(c.z), "+r"(c.w)
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
    D[i] = c;
}
