// red: an atomic whose old value nobody asks for, in global and shared memory.
extern "C" __global__ void reductions(const int* a, int* cells, float* sum) {
    __shared__ int peak;
    int x = a[threadIdx.x];
    if (threadIdx.x == 0) peak = -1000000;
    __syncthreads();
    asm volatile("red.global.add.s32 [%0], %1;" ::"l"(cells), "r"(x) : "memory");
    asm volatile("red.global.min.s32 [%0], %1;" ::"l"(cells + 1), "r"(x) : "memory");
    asm volatile("red.global.xor.b32 [%0], %1;" ::"l"(cells + 2), "r"(x) : "memory");
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(sum), "f"((float)x) : "memory");
    unsigned address = __cvta_generic_to_shared(&peak);
    asm volatile("red.shared.max.s32 [%0], %1;" ::"r"(address), "r"(x) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) cells[3] = peak;
}
