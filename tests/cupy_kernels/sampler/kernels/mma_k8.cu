// The shorter m16n8k8 product of halves: half of A, half of B.
extern "C" __global__ void mma_k8(const uint2* A, const unsigned* B, const float4* C, float4* D) {
    int i = blockIdx.x * 32 + threadIdx.x;
    uint2 a = A[i];
    float4 c = C[i];
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6},"
        " {%0, %1, %2, %3};"
        : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)
        : "r"(a.x), "r"(a.y), "r"(B[i]));
    D[i] = c;
}
