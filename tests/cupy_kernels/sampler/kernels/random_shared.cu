// Reads from random places in shared memory, 4, 8 and 16 bytes a lane: bank conflicts of all kinds.
extern "C" __global__ void random_shared(const int* from, const float* a4, const float2* a8,
                                         const float4* a16, float* o4, float2* o8, float4* o16) {
    __shared__ __align__(128) float t4[128];
    __shared__ __align__(128) float2 t8[128];
    __shared__ __align__(128) float4 t16[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t, k = from[i];
    t4[t] = a4[t];
    t8[t] = a8[t];
    t16[t] = a16[t];
    __syncthreads();
    o4[i] = t4[k];
    o8[i] = t8[k];
    o16[i] = t16[k];
}
