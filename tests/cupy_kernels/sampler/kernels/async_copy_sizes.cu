// cp.async of 4, 8 and 16 bytes a lane, then one wait for all of them.
#define COPY(cache, bytes, to, from)                                                  \
    asm volatile("cp.async." cache ".shared.global [%0], [%1], " bytes ";"            \
                 ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");

extern "C" __global__ void async_copy_sizes(const int* a, const int2* b, const int4* c, int* out) {
    __shared__ __align__(16) int tile[7 * 32];
    int i = threadIdx.x;
    COPY("ca", "4", tile + i, a + i)
    COPY("ca", "8", tile + 32 + 2 * i, b + i)
    COPY("cg", "16", tile + 96 + 4 * i, c + i)
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int k = 0; k < 7; ++k) out[32 * k + i] = tile[32 * k + 31 - i];
}
