// all, any and ballot, over the whole warp and over a part of it.
extern "C" __global__ void votes(const int* a, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned* o = out + 5 * i;
    o[0] = __ballot_sync(~0u, a[i] > 0);
    o[1] = __all_sync(~0u, a[i] > -90);
    o[2] = __any_sync(~0u, a[i] > 95);
    asm("{ .reg .pred p, q; setp.gt.s32 p, %1, 0; vote.sync.uni.pred q, p, 0xffffffff;"
        " selp.u32 %0, 1, 0, q; }" : "=r"(o[3]) : "r"(a[i] >> 31 | 1));
    o[4] = 77;
    if (lane >= 20) o[4] = __ballot_sync(0xfff00000, a[i] & 1);
}
