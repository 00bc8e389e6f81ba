// Atomic sums of floats and doubles; whole numbers make every order of addition exact.
extern "C" __global__ void float_atomics(const float* a, float* sums, double* wide) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(sums + (i & 3), a[i]);
    atomicAdd(wide, (double)a[i] * 0.5);
    if (i == 3) atomicExch(sums + 4, 2.5f);
}
