extern "C" __global__ void diverged_ldmatrix(const uint4* a, unsigned* out) {
    __shared__ uint4 tile[8];
    int lane = threadIdx.x;
    if (lane < 8) tile[lane] = a[lane];
    __syncthreads();
    out[lane] = 0;
    if (lane < 8) {
        unsigned from = __cvta_generic_to_shared(tile + lane);
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(out[lane]) : "r"(from));  // BUG
    }
}
