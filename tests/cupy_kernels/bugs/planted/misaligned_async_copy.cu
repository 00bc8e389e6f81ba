extern "C" __global__ void misaligned_async_copy(const char* a, int4* out) {
    __shared__ int4 tile[32];
    int i = threadIdx.x;
    unsigned to = __cvta_generic_to_shared(tile + i);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(a + 16 * i + 8) : "memory");  // BUG
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[i] = tile[i];
}
