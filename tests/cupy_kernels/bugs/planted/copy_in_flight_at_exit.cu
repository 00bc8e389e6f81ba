extern "C" __global__ void copy_in_flight_at_exit(const int* a, int* out) {
    __shared__ int tile[32];
    int i = threadIdx.x;
    unsigned to = __cvta_generic_to_shared(tile + i);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(a + i) : "memory");  // BUG
    out[i] = i;
}
