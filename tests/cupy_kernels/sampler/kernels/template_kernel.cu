// A kernel template, instantiated by name for two types and two sizes.
template <typename T, int width>
__global__ void row_sums(const T* a, T* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T sum = 0;
    for (int k = 0; k < width; ++k) sum += a[i * width + k];
    out[i] = sum;
}
