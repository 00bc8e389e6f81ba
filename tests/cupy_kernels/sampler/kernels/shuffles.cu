// Values from other lanes: by index, up, down and xor, for whole warps and for parts of them.
extern "C" __global__ void shuffles(const int* a, const int* source, int* out, double* wide) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i], s = source[i];
    int* o = out + 9 * i;
    o[0] = __shfl_sync(~0u, x, s);
    o[1] = __shfl_sync(~0u, x, s, 8);
    o[2] = __shfl_up_sync(~0u, x, 3);
    o[3] = __shfl_up_sync(~0u, x, 1, 4);
    o[4] = __shfl_down_sync(~0u, x, 5);
    o[5] = __shfl_down_sync(~0u, x, 2, 16);
    o[6] = __shfl_xor_sync(~0u, x, 9);
    o[7] = __shfl_xor_sync(~0u, x, 17, 16);
    o[8] = __shfl_down_sync(~0u, x, s);
    wide[i] = __shfl_xor_sync(~0u, x * 0.125, 1);
}
