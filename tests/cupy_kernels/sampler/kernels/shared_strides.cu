// Shared memory at strides 1, 2, 8, 32 and 33 words, and 8- and 16-byte accesses.
extern "C" __global__ void shared_strides(const int* a, int* out) {
    __shared__ __align__(16) int tile[33 * 32];
    int t = threadIdx.x;
    for (int k = t; k < 33 * 32; k += 32) tile[k] = a[k];
    __syncthreads();
    int* o = out + 12 * t;
    o[0] = tile[t];
    o[1] = tile[2 * t];
    o[2] = tile[8 * t];
    o[3] = tile[32 * t];
    o[4] = tile[33 * t];
    o[5] = tile[t / 4];
    int2 p = reinterpret_cast<int2*>(tile)[t * 3];
    int4 q = reinterpret_cast<int4*>(tile)[t * 2 + 1];
    o[6] = p.x, o[7] = p.y, o[8] = q.x, o[9] = q.y, o[10] = q.z, o[11] = q.w;
}
