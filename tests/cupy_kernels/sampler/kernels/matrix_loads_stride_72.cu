// ldmatrix.x4 on rows padded to 72 halves: no two rows share a bank.
extern "C" __global__ void matrix_loads_stride_72(const uint4* a, uint4* out) {
    __shared__ uint4 tile[32 * 9];
    int lane = threadIdx.x;
    for (int k = lane; k < 256; k += 32) tile[k / 8 * 9 + k % 8] = a[k];
    __syncthreads();
    unsigned address = __cvta_generic_to_shared(tile + lane % 16 * 9 + lane / 16);
    uint4 r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(address));
    out[lane] = r;
}
