// Atomics on integers in global memory: from all lanes to few cells, from all blocks.
extern "C" __global__ void integer_atomics(const int* a, int* cells, unsigned long long* wide) {
    int x = a[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(cells, x);
    atomicSub(cells + 1, x);
    atomicMin(cells + 2, x);
    atomicMax(cells + 3, x);
    atomicMax(reinterpret_cast<unsigned*>(cells) + 4, (unsigned)x);
    atomicAnd(cells + 5, x | 0xff);
    atomicOr(cells + 6, x & 0xff00);
    atomicXor(cells + 7, x);
    atomicInc(reinterpret_cast<unsigned*>(cells) + 8, 9);
    atomicDec(reinterpret_cast<unsigned*>(cells) + 9, 6);
    atomicAdd(wide, (unsigned long long)(long long)x << 20);
    atomicMax(wide + 1, (unsigned long long)x * 977);
    atomicAdd(cells + 10 + (x & 7), 1);
}
