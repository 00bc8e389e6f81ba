// Shifts by registers; an amount of 32 or more gives 0, or the sign when shifting signed values.
extern "C" __global__ void shifts(const int* value, const int* amount, const long long* wide_value,
                                  int* out, long long* wide_out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = value[i], s = amount[i];
    int* o = out + 4 * i;
    asm("shl.b32 %0, %1, %2;" : "=r"(o[0]) : "r"(v), "r"(s));
    asm("shr.u32 %0, %1, %2;" : "=r"(o[1]) : "r"(v), "r"(s));
    asm("shr.s32 %0, %1, %2;" : "=r"(o[2]) : "r"(v), "r"(s));
    o[3] = (v >> 3) ^ (int)((unsigned)v >> 5) ^ (v << 7);

    long long w = wide_value[i];
    asm("shl.b64 %0, %1, %2;" : "=l"(wide_out[3 * i]) : "l"(w), "r"(s));
    asm("shr.u64 %0, %1, %2;" : "=l"(wide_out[3 * i + 1]) : "l"(w), "r"(s));
    asm("shr.s64 %0, %1, %2;" : "=l"(wide_out[3 * i + 2]) : "l"(w), "r"(s));
}
