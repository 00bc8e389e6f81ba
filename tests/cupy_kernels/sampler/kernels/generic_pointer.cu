// One pointer that points into global, shared or local memory, lane by lane.
__noinline__ __device__ int sum3(const int* p) { return p[0] + p[1] + p[2]; }

extern "C" __global__ void generic_pointer(const int* a, int* out) {
    __shared__ int tile[96];
    int mine[3];
    int i = threadIdx.x;
    for (int k = 0; k < 3; ++k) {
        tile[3 * i + k] = a[3 * i + k] * 10;
        mine[k] = a[3 * i + k] * 100 + k;
    }
    __syncthreads();
    const int* p = i % 3 == 0 ? a + 3 * i : i % 3 == 1 ? tile + 3 * (31 - i) : mine;
    out[i] = sum3(p);
    __syncthreads();
    int* q = i % 2 ? tile + i : out + 32 + i;
    *q = -i;
    __syncthreads();
    out[64 + i] = i % 2 ? tile[i ^ 2] : out[32 + (i ^ 2)];
}
