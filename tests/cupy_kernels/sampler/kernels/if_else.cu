// Lanes of a warp take different sides of a branch and meet again behind it.
extern "C" __global__ void if_else(const int* a, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i];
    if (x & 1) {
        out[i] = x * 3 + 1;
        x += 1000;
    } else {
        out[i] = x / 2;
        x -= 1000;
    }
    out[i] += x;
}
