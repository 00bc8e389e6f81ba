// redux: integer reductions over the lanes of a mask in one instruction.
extern "C" __global__ void warp_reductions(const int* a, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int* o = out + 9 * i;
    o[0] = __reduce_add_sync(~0u, a[i]);
    o[1] = __reduce_min_sync(~0u, a[i]);
    o[2] = __reduce_max_sync(~0u, a[i]);
    o[3] = __reduce_min_sync(~0u, (unsigned)a[i]);
    o[4] = __reduce_max_sync(~0u, (unsigned)a[i]);
    o[5] = __reduce_and_sync(~0u, (unsigned)a[i] | 0xf0f);
    o[6] = __reduce_or_sync(~0u, (unsigned)a[i] & 0xff00);
    o[7] = __reduce_xor_sync(~0u, (unsigned)a[i]);
    o[8] = 0;
    if (threadIdx.x % 32 < 7) o[8] = __reduce_add_sync(0x7f, a[i]);
}
