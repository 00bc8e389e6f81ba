// cp.async.ca, 16 bytes a lane through L1.
extern "C" __global__ void async_copy_cached(const int4* a, int4* out) {
    __shared__ int4 tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned to = __cvta_generic_to_shared(tile + threadIdx.x);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(a + i) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[i] = tile[threadIdx.x ^ 1];
}
