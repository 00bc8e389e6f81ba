// stmatrix: registers of a warp back into 8 by 8 tiles of halves, straight and transposed.
extern "C" __global__ void matrix_stores(const unsigned* a, uint4* out) {
    __shared__ uint4 tile[72];
    int lane = threadIdx.x;
    const unsigned r[4] = {a[4 * lane], a[4 * lane + 1], a[4 * lane + 2], a[4 * lane + 3]};
    for (int k = lane; k < 72; k += 32) tile[k] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    unsigned x4 = __cvta_generic_to_shared(tile + (lane * 3) % 32);
    unsigned x2 = __cvta_generic_to_shared(tile + 32 + lane % 16);
    unsigned x2t = __cvta_generic_to_shared(tile + 48 + (lane * 7) % 16);
    unsigned x1t = __cvta_generic_to_shared(tile + 64 + lane % 8);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(x4), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                 ::"r"(x2), "r"(r[0]), "r"(r[1]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 ::"r"(x2t), "r"(r[2]), "r"(r[3]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                 ::"r"(x1t), "r"(r[3]) : "memory");
    __syncthreads();
    for (int k = lane; k < 72; k += 32) out[k] = tile[k];
}
