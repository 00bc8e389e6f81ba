// Extract and insert bit fields whose position and length are registers.
extern "C" __global__ void bit_fields(const unsigned* value, const unsigned* base,
                                      const unsigned* position, const unsigned* length,
                                      unsigned* out, unsigned long long* wide_out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = value[i], b = base[i], p = position[i], n = length[i];
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(out[3 * i]) : "r"(v), "r"(p), "r"(n));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(out[3 * i + 1]) : "r"(v), "r"(p), "r"(n));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(out[3 * i + 2]) : "r"(v), "r"(b), "r"(p), "r"(n));

    unsigned long long w = (unsigned long long)v << 32 | b;
    unsigned long long* o = wide_out + 3 * i;
    asm("bfe.u64 %0, %1, %2, %3;" : "=l"(o[0]) : "l"(w), "r"(p), "r"(n));
    asm("bfe.s64 %0, %1, %2, %3;" : "=l"(o[1]) : "l"(w), "r"(p), "r"(n));
    asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(o[2]) : "l"(~w), "l"(w), "r"(p), "r"(n));
}
