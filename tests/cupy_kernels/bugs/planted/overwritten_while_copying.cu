extern "C" __global__ void overwritten_while_copying(const int* a, int* out) {
    __shared__ int tile[32];
    int i = threadIdx.x;
    unsigned to = __cvta_generic_to_shared(tile + i);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(a + i) : "memory");
    tile[i] = 0;  // BUG
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[i] = tile[i];
}
