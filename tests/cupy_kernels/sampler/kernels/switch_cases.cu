// A switch with fall-through and a default.
extern "C" __global__ void switch_cases(const int* a, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i], y = 0;
    switch (x) {
        case 0: y = 11; break;
        case 1: y = 22;
        case 2: y += 33; break;
        case 3: y = x * i; break;
        case 4: y = i - 5; break;
        case 7: y = ~i; break;
        case 9: y = i * i; break;
        default: y = -x;
    }
    out[i] = y;
}
