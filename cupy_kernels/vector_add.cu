// z = x + y, one element a thread.
//
// The 32 threads of a warp take 32 neighbouring elements, so each request of a warp touches 128
// bytes in a row: 4 sectors, and every byte of them is used.
//
//   grid  (⌈n / 256⌉)      block (256)

extern "C" __global__ void vector_add(
    const float* __restrict__ x,  // [n]
    const float* __restrict__ y,  // [n]
    float* __restrict__ z,        // [n]
    int n) {
    // Which element is mine? The last block may stick out beyond the end.
    // BEGIN SOLUTION
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
    // END SOLUTION
}
