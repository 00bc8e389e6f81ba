// One and two bytes at a time: sign extension when loaded, truncation when stored.
extern "C" __global__ void byte_accesses(const signed char* a, const unsigned char* b,
                                         const short* c, int* sums, unsigned char* bytes,
                                         unsigned short* halves) {
    __shared__ unsigned char tile[64];
    __shared__ short pairs[64];
    int i = threadIdx.x;
    tile[i] = b[i];
    pairs[i] = c[i];
    __syncthreads();
    sums[i] = a[i] + b[i] * 256 + c[i];
    bytes[i] = tile[63 - i] + a[i];
    halves[i] = pairs[63 - i] * 3;
}
