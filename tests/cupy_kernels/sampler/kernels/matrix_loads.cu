// ldmatrix: one, two and four 8 by 8 tiles of halves into registers, straight and transposed.
#define LOAD(count, operands, trans, base, ...)                                                   \
    asm volatile("ldmatrix.sync.aligned.m8n8." count trans ".shared.b16 {" operands "}, [%" base "];" \
                 : __VA_ARGS__ : "r"(address));

extern "C" __global__ void matrix_loads(const uint4* a, unsigned* out) {
    __shared__ uint4 tile[32];
    int lane = threadIdx.x;
    tile[lane] = a[lane];
    __syncthreads();
    unsigned address = __cvta_generic_to_shared(tile + (lane * 5) % 32);
    unsigned* o = out + 14 * lane;
    LOAD("x1", "%0", "", "1", "=r"(o[0]))
    LOAD("x1", "%0", ".trans", "1", "=r"(o[1]))
    LOAD("x2", "%0, %1", "", "2", "=r"(o[2]), "=r"(o[3]))
    LOAD("x2", "%0, %1", ".trans", "2", "=r"(o[4]), "=r"(o[5]))
    LOAD("x4", "%0, %1, %2, %3", "", "4", "=r"(o[6]), "=r"(o[7]), "=r"(o[8]), "=r"(o[9]))
    LOAD("x4", "%0, %1, %2, %3", ".trans", "4", "=r"(o[10]), "=r"(o[11]), "=r"(o[12]), "=r"(o[13]))
}
