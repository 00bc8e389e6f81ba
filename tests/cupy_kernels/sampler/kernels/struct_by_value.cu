// A struct with mixed members, passed to the kernel by value.
struct Launch {
    float scale;
    int offset;
    double bias;
    unsigned char flags[4];
    long long limit;
};

extern "C" __global__ void struct_by_value(const float* a, Launch launch, double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = a[i] * launch.scale + launch.bias;
    if (launch.flags[i & 3]) x += launch.offset;
    out[i] = i < launch.limit ? x : -1.0;
}
