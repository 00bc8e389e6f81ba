// shf: 32 bits out of a 64-bit pair, the amount taken modulo 32 (wrap) or held at 32 (clamp).
extern "C" __global__ void funnel_shift(const unsigned* low, const unsigned* high,
                                        const unsigned* amount, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[4 * i] = __funnelshift_l(low[i], high[i], amount[i]);
    out[4 * i + 1] = __funnelshift_lc(low[i], high[i], amount[i]);
    out[4 * i + 2] = __funnelshift_r(low[i], high[i], amount[i]);
    out[4 * i + 3] = __funnelshift_rc(low[i], high[i], amount[i]);
}
