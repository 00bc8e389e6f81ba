// Which lanes hold the same value: match.any, match.all, 32 and 64 bits wide.
extern "C" __global__ void match_lanes(const int* a, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, same;
    unsigned* o = out + 5 * i;
    o[0] = __match_any_sync(~0u, a[i]);
    o[1] = __match_all_sync(~0u, a[i], &same);
    o[2] = same;
    o[3] = __match_any_sync(~0u, (unsigned long long)a[i] << 33);
    o[4] = __match_all_sync(~0u, a[i] >> 20, &same) ^ same;
}
