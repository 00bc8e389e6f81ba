// Three-dimensional blocks in a three-dimensional grid: which thread is which.
extern "C" __global__ void grid_3d(int* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[(z * height + y) * width + x] = x + 100 * y + 10000 * z + 1000000 * lane;
}
