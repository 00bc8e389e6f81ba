// C = A B in 16 by 16 tiles, N a multiple of 16.
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int N) {
    __shared__ float As[16][16], Bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int k = 0; k < N; k += 16) {
        As[ty][tx] = A[row * N + k + tx];
        Bs[ty][tx] = B[(k + ty) * N + column];
        __syncthreads();
        for (int x = 0; x < 16; ++x) sum += As[ty][x] * Bs[x][tx];
        __syncthreads();
    }
    C[row * N + column] = sum;
}
