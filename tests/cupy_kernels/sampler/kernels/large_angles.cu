// sinf of a large angle takes its slow path: a long reduction through a table in local memory.
extern "C" __global__ void large_angles(const float* angle, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[2 * i] = sinf(angle[i]);
    out[2 * i + 1] = cosf(angle[i]);
}
