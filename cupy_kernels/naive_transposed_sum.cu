// Naive attention, backward, a product that sums over queries: dV = Pᵀ dO and dK = dSᵀ Q.
//
// One thread computes one element of Y = Aᵀ X. The 32 threads of a warp take 32 neighbouring
// columns of one key, so each load of A is one address for all (one sector; the next one lies a
// whole row of A away) and each load of X is 128 bytes in a row (four sectors).
//
//   grid  (⌈d / 32⌉, ⌈Nk / 8⌉, batch · kv_heads)      block (32, 8)

extern "C" __global__ void naive_transposed_sum(
    const float* __restrict__ a,  // [batch, heads, Nq, Nk]
    const float* __restrict__ x,  // [batch, heads, Nq, d]
    float* __restrict__ y,        // [batch, kv_heads, Nk, d]
    int heads, int kv_heads, int Nq, int Nk, int d) {
    // ---- Which element is mine --------------------------------------------------------------
    const int c = blockIdx.x * blockDim.x + threadIdx.x;  // column
    const int j = blockIdx.y * blockDim.y + threadIdx.y;  // key
    if (j >= Nk || c >= d) return;

    // ---- Weighted sum of the rows of X, over all query heads that share this key ------------
    const long long rows = (long long)(heads / kv_heads) * Nq;  // they lie one after the other
    const long long first_row = blockIdx.z * rows;
    float sum = 0.0f;
    for (long long i = first_row; i < first_row + rows; ++i) sum += a[i * Nk + j] * x[i * d + c];
    y[((long long)blockIdx.z * Nk + j) * d + c] = sum;
}
