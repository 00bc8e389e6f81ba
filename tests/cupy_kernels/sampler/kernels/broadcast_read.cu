// All lanes of a warp read one float: one sector a request.
extern "C" __global__ void broadcast_read(const float* a, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i / 32];
}
