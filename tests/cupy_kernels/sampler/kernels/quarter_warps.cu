// Sixteen-byte lanes of different quarter-warps that share sectors.
extern "C" __global__ void quarter_warps(const float4* a, float4* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    out[i] = a[(i - lane) + (lane % 8) * 4 + lane / 8];
}
