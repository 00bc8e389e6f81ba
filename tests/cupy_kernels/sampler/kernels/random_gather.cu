// Loads from random places and stores to random places, 1 to 16 bytes a lane, some lanes idle.
extern "C" __global__ void random_gather(const int* from, const int* to, const char* a1,
                                         const short* a2, const float* a4, const float2* a8,
                                         const float4* a16, char* o1, short* o2, float* o4,
                                         float2* o8, float4* o16) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = from[i];
    if (k < 0) return;
    int j = to[i];
    o1[j] = a1[k];
    o2[j] = a2[k];
    o4[j] = a4[k];
    o8[j] = a8[k];
    o16[j] = a16[k];
}
