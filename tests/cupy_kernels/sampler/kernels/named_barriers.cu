// Two warps produce and two consume: arrive without waiting on one barrier, wait on another.
extern "C" __global__ void named_barriers(const int* a, int* out, int rounds) {
    __shared__ int tile[64];
    int t = threadIdx.x % 64;
    bool producer = threadIdx.x < 64;
    for (int k = 0; k < rounds; ++k) {
        if (producer) {
            if (k > 0) asm volatile("bar.sync 2, 128;" ::: "memory");
            tile[t] = a[k * 64 + t] + k;
            asm volatile("bar.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            out[k * 64 + t] = tile[63 - t];
            if (k + 1 < rounds) asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    }
}
