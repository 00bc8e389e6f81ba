extern "C" __global__ void wild_pointer(unsigned long long address, float* out) {
    out[threadIdx.x] = reinterpret_cast<const float*>(address)[threadIdx.x];  // BUG
}
