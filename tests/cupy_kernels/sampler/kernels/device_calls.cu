// Functions that are really called, from converged and from diverged code, and call each other.
__noinline__ __device__ int triple_plus(int x, int y) { return 3 * x + y; }

__noinline__ __device__ float2 sum_and_difference(float2 p, float scale) {
    return make_float2((p.x + p.y) * scale, (p.x - p.y) * scale);
}

__noinline__ __device__ int power(int base, int exponent) {
    int result = 1;
    for (int k = 0; k < exponent; ++k) result = triple_plus(result * base, k);
    return result;
}

extern "C" __global__ void device_calls(const int* a, const float2* p, int* out, float2* pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int y = triple_plus(a[i], i);
    if (i % 3) y += power(a[i] & 7, i % 5);
    out[i] = y;
    pairs[i] = sum_and_difference(p[i], 0.5f);
}
