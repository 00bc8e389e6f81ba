// Local memory is interleaved so that a warp's accesses to one index are coalesced.
extern "C" __global__ void local_traffic(const int* order, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int slots[32];
    for (int k = 0; k < 32; ++k) slots[order[k]] = k + i;
    int sum = 0;
    for (int k = 0; k < 32; ++k) sum = sum * 3 + slots[order[31 - k] ^ 1];
    out[i] = sum;
}
