extern "C" __global__ void named_barrier_count(int* out) {
    asm volatile("bar.sync 1, 100;" ::: "memory");  // BUG
    out[threadIdx.x] = 1;
}
