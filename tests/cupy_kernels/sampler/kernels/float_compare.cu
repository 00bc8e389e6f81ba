// The fourteen comparisons of floats: six ordered, six that are true for NaN, num and nan.
#define COMPARE(bit, operation)                                    \
    asm("{ .reg .pred p; setp." operation ".f32 p, %1, %2;"        \
        " selp.u32 %0, 1, 0, p; }" : "=r"(hit) : "f"(x), "f"(y)); \
    mask |= hit << bit;

extern "C" __global__ void float_compare(const float* a, const float* b, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i], y = b[i];
    unsigned mask = 0, hit;
    COMPARE(0, "eq") COMPARE(1, "ne") COMPARE(2, "lt") COMPARE(3, "le") COMPARE(4, "gt")
    COMPARE(5, "ge") COMPARE(6, "equ") COMPARE(7, "neu") COMPARE(8, "ltu") COMPARE(9, "leu")
    COMPARE(10, "gtu") COMPARE(11, "geu") COMPARE(12, "num") COMPARE(13, "nan")
    out[i] = mask;
}
