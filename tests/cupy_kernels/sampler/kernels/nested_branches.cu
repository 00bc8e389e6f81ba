// Branches inside branches inside a loop, no two lanes alike.
extern "C" __global__ void nested_branches(const unsigned* a, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = a[i], y = 0;
    for (int k = 0; k < 8; ++k) {
        if (x & 1) {
            if (x & 2) {
                y += x;
                if (x & 4) y ^= 0x55;
            } else {
                y -= k;
            }
        } else if (x & 8) {
            y = y * 3 + 1;
        }
        x >>= 3;
    }
    out[i] = y;
}
