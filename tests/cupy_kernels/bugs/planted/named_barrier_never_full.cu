extern "C" __global__ void named_barrier_never_full(int* out) {
    if (threadIdx.x < 64) {
        asm volatile("bar.sync 1, 96;" ::: "memory");  // BUG
    }
    out[threadIdx.x] = 1;
}
