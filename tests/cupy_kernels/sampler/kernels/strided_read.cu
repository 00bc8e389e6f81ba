// Lanes a row of 64 floats apart: every lane touches a sector of its own.
extern "C" __global__ void strided_read(const float* a, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[64 * i];
}
