// Which lanes run together on either side of a branch, and where the warp stands below a lane.
extern "C" __global__ void active_mask(const int* a, unsigned* out) {
    int i = threadIdx.x;
    unsigned below, upto;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(upto));
    out[3 * i] = below;
    out[3 * i + 1] = upto;
    if (a[i] & 1) {
        out[3 * i + 2] = __activemask();
    } else {
        out[3 * i + 2] = ~__activemask();
    }
}
