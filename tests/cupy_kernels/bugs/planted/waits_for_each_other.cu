extern "C" __global__ void waits_for_each_other(int* out) {
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;" ::: "memory");  // BUG
        asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");  // OTHER
        asm volatile("bar.sync 1, 64;" ::: "memory");
    }
    out[threadIdx.x] = 1;
}
