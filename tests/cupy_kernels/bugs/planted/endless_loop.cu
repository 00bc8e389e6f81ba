extern "C" __global__ void endless_loop(const volatile int* flag, int* out) {
    int turns = 0;
    while (flag[threadIdx.x] == 0) {
        ++turns;  // BUG
    }
    out[threadIdx.x] = turns;
}
