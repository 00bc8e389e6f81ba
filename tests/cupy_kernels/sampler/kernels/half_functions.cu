// Exponential and tanh of half precision numbers, computed by the special function unit.
extern "C" __global__ void half_functions(const unsigned* pairs, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm("ex2.approx.f16x2 %0, %1;" : "=r"(out[3 * i]) : "r"(pairs[i]));
    asm("tanh.approx.f16x2 %0, %1;" : "=r"(out[3 * i + 1]) : "r"(pairs[i]));
    short low;
    asm("ex2.approx.f16 %0, %1;" : "=h"(low) : "h"((short)pairs[i]));
    out[3 * i + 2] = (unsigned short)low;
}
