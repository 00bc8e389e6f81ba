// P = softmax(S) row by row, one block of four warps a row.
__device__ float warp_max(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

extern "C" __global__ void softmax_rows(const float* S, float* P, int N) {
    __shared__ float red[4];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* s = S + (size_t)blockIdx.x * N;
    float* p = P + (size_t)blockIdx.x * N;

    float m = -INFINITY;
    for (int j = threadIdx.x; j < N; j += 128) m = fmaxf(m, s[j]);
    m = warp_max(m);
    if (lane == 0) red[warp] = m;
    __syncthreads();
    m = fmaxf(fmaxf(red[0], red[1]), fmaxf(red[2], red[3]));
    __syncthreads();

    float l = 0.0f;
    for (int j = threadIdx.x; j < N; j += 128) l += __expf(s[j] - m);
    l = warp_sum(l);
    if (lane == 0) red[warp] = l;
    __syncthreads();
    l = red[0] + red[1] + red[2] + red[3];

    for (int j = threadIdx.x; j < N; j += 128) p[j] = __expf(s[j] - m) / l;
}
