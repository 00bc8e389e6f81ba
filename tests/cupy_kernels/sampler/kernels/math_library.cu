// What C++ code calls: expf, logf, sinf and friends, compiled into polynomials and table steps.
extern "C" __global__ void math_library(const float* a, const float* positive, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i], p = positive[i];
    float* o = out + 10 * i;
    o[0] = expf(x);
    o[1] = logf(p);
    o[2] = exp2f(x);
    o[3] = log2f(p);
    o[4] = sinf(x);
    o[5] = cosf(x);
    o[6] = tanhf(x);
    o[7] = erff(x);
    o[8] = powf(p, 1.5f);
    o[9] = rsqrtf(p);
}
