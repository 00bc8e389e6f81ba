// Each pair of warps meets at its own barrier, whose number is computed at run time.
extern "C" __global__ void barrier_in_a_register(const int* a, int* out) {
    __shared__ int tile[128];
    int pair = threadIdx.x / 64, i = threadIdx.x;
    tile[i] = a[i];
    asm volatile("bar.sync %0, %1;" ::"r"(pair + 1), "r"(64) : "memory");
    out[i] = tile[i ^ 63];
}
