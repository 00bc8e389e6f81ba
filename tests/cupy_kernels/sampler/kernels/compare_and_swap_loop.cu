// A float maximum made of compare-and-swap: each lane retries until its update is in.
extern "C" __global__ void compare_and_swap_loop(const float* a, unsigned* peak, int* attempts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = a[i];  // read once: how often a lane retries is not the same on two machines
    unsigned seen = atomicAdd(peak, 0u);
    int tries = 0;
    while (__uint_as_float(seen) < x) {
        unsigned before = atomicCAS(peak, seen, __float_as_uint(x));
        ++tries;
        if (before == seen) break;
        seen = before;
    }
    __syncwarp();
    attempts[i] = tries <= 64;
}
