// Sixteen bytes a lane, lanes 48 bytes apart.
extern "C" __global__ void strided_float4(const float4* a, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[3 * i];
}
