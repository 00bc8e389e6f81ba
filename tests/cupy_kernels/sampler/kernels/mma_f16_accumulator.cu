// The same product summed in half precision: two accumulators share a register.
extern "C" __global__ void mma_f16_accumulator(const uint4* A, const uint2* B, const uint2* C,
                                               uint2* D) {
    int i = blockIdx.x * 32 + threadIdx.x;
    uint4 a = A[i];
    uint2 b = B[i], c = C[i];
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7},"
        " {%0, %1};"
        : "+r"(c.x), "+r"(c.y)
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
    D[i] = c;
}
