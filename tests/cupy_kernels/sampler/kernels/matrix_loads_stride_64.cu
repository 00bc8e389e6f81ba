// ldmatrix.x4 on rows of 64 halves: all rows start in the same bank.
extern "C" __global__ void matrix_loads_stride_64(const uint4* a, uint4* out) {
    __shared__ uint4 tile[32 * 8];
    int lane = threadIdx.x;
    for (int k = lane; k < 256; k += 32) tile[k] = a[k];
    __syncthreads();
    unsigned address = __cvta_generic_to_shared(tile + lane % 16 * 8 + lane / 16);
    uint4 r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(address));
    out[lane] = r;
}
