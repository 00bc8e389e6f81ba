extern "C" __global__ void lane_outside_mask(const int* a, int* out) {
    int i = threadIdx.x;
    out[i] = __shfl_sync(0x0000ffff, a[i], 3);  // BUG
}
