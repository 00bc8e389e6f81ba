// Lanes of a warp hand values to each other through shared memory with __syncwarp alone.
extern "C" __global__ void warp_sync(const int* a, int* out) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = a[i];
    __syncwarp();
    int x = tile[i ^ 5];
    __syncwarp();
    if (i % 32 < 16) {
        tile[i] = x * 2;
        __syncwarp(0xffff);
        x = tile[i ^ 15];
    }
    out[i] = x;
}
