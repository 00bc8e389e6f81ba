// Atomics and reductions: to one cell a warp, to one cell a lane, and with the old value used.
extern "C" __global__ void atomic_traffic(int* one, int* each, int* old) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicXor(one + i / 32 * 8, i);
    atomicAdd(each + i, i);
    old[i] = atomicMax(each + 1024 + i, 5);
}
