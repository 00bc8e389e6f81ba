// Bytes and halves: one and two sectors a request.
extern "C" __global__ void narrow_copies(const unsigned char* a, const unsigned short* b,
                                         unsigned char* bytes, unsigned short* halves) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bytes[i] = a[i];
    halves[i] = b[i];
}
