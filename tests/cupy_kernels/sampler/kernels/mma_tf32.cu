// One m16n8k8 product of tf32 numbers a block, summed in float; A and B arrive as fragments.
extern "C" __global__ void mma_tf32(const uint4* A, const uint2* B, const float4* C, float4* D) {
    int i = blockIdx.x * 32 + threadIdx.x;
    uint4 a = A[i];
    uint2 b = B[i];
    float4 c = C[i];
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
        " {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
    D[i] = c;
}
