extern "C" __global__ void diverged_mma(const unsigned* a, float4* out) {
    int lane = threadIdx.x;
    float4 c = make_float4(0, 0, 0, 0);
    if (lane < 16) {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"  // BUG
                     : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w) : "r"(a[lane]), "r"(a[lane]), "r"(a[lane]));
    }
    out[lane] = c;
}
