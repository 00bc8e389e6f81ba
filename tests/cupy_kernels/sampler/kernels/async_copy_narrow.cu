// cp.async.ca of 4 and 8 bytes a lane, coalesced and a row apart.
#define COPY(bytes, to, from)                                                    \
    asm volatile("cp.async.ca.shared.global [%0], [%1], " bytes ";"              \
                 ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");

extern "C" __global__ void async_copy_narrow(const int* a, int* out) {
    __shared__ __align__(16) int tile[128 * 4];
    int t = threadIdx.x;
    COPY("4", tile + t, a + t)
    COPY("8", tile + 128 + 2 * t, a + 128 + 2 * t)
    COPY("4", tile + 384 + t, a + 512 + 16 * t)
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int k = t; k < 512; k += 128) out[k] = tile[k];
}
