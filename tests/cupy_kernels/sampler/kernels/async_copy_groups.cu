// Three stages in flight: wait_group leaves the two newest groups running.
extern "C" __global__ void async_copy_groups(const int* a, int* out, int rounds) {
    __shared__ int stage[3][32];
    int i = threadIdx.x;
    for (int k = 0; k < rounds + 2; ++k) {
        if (k < rounds) {
            unsigned to = __cvta_generic_to_shared(&stage[k % 3][i]);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(a + 32 * k + i) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (k < 2) continue;
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        __syncthreads();
        out[32 * (k - 2) + i] = stage[(k - 2) % 3][31 - i];
        __syncthreads();
    }
}
