// shfl also tells whether its source lane was inside the segment; some lanes only, by mask.
extern "C" __global__ void shuffle_predicate(const int* a, int* out) {
    int i = threadIdx.x, inside;
    int x = a[i];
    asm("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 4, 0, 0xffffffff; selp.s32 %1, 1, 0, p; }"
        : "=r"(out[3 * i]), "=r"(inside) : "r"(x));
    out[3 * i + 1] = inside;
    int y = -1;
    if (i % 32 < 12) y = __shfl_sync(0xfff, x, (i + 1) % 12);
    out[3 * i + 2] = y;
}
