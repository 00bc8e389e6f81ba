// What an atomic returns: the old values of a counter are all different; exch and cas hand over.
extern "C" __global__ void atomic_results(int* counter, int* ticket, int* slot, int* token,
                                          int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    ticket[atomicAdd(counter, 1)] = 1;
    out[2 * i] = atomicExch(slot + i, i * 7);
    out[2 * i + 1] = atomicCAS(token + i, i & ~1, 1000 + i);
}
