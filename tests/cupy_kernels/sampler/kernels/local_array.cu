// An array indexed at run time lives in local memory, private to each thread.
extern "C" __global__ void local_array(const int* order, const int* a, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int slots[16];
    for (int k = 0; k < 16; ++k) slots[order[16 * i + k]] = a[16 * i + k];
    for (int k = 0; k < 16; ++k) out[16 * i + k] = slots[k] + slots[slots[k] & 15];
}
