extern "C" __global__ void two_lanes_one_cell(const int* a, int* out) {
    __shared__ int tile[16];
    int i = threadIdx.x;
    tile[i / 2] = a[i];  // BUG
    __syncthreads();
    out[i] = tile[i / 2];
}
