extern "C" __global__ void local_index_out_of_range(const int* a, int* out) {
    int slots[8];
    int i = threadIdx.x;
    for (int k = 0; k < 8; ++k) slots[k] = a[k] * i;
    out[i] = slots[a[i]];  // BUG
}
