// printf from the device: integers, floats, strings and percent signs.
extern "C" __global__ void printf_lines(const int* a, int* out) {
    int i = threadIdx.x;
    if (i % 16 == 0) printf("thread %d of %s: %5.2f%% %u 0x%x %c\n", i, "warp", a[i] * 0.5, a[i], a[i], 'k');
    out[i] = a[i];
}
