// Naive attention, kernel 3 of 3: O = P V.
//
// One thread computes one element of O. The 32 threads of a warp take 32 neighbouring columns of one
// row, so each load of P is one address for all (one sector) and each load of V is 128 bytes in a
// row (four sectors): coalesced, unlike the keys in kernel 1.
//
//   grid  (⌈d / 32⌉, ⌈Nq / 8⌉, batch · heads)      block (32, 8)

extern "C" __global__ void naive_weighted_sum(
    const float* __restrict__ p,  // [batch, heads, Nq, Nk]
    const float* __restrict__ v,  // [batch, kv_heads, Nk, d]
    float* __restrict__ o,        // [batch, heads, Nq, d]
    int heads, int kv_heads, int Nq, int Nk, int d) {
    // ---- Which element is mine --------------------------------------------------------------
    // c is the column (along x), i the query (along y); threads that stick out have none.
    // BEGIN SOLUTION
    const int c = blockIdx.x * blockDim.x + threadIdx.x;  // column
    const int i = blockIdx.y * blockDim.y + threadIdx.y;  // query
    if (i >= Nq || c >= d) return;
    // END SOLUTION

    const int head = blockIdx.z % heads, batch = blockIdx.z / heads;
    const int kv_head = head / (heads / kv_heads);
    const long long query_row = (long long)blockIdx.z * Nq + i;
    const long long first_key_row = ((long long)batch * kv_heads + kv_head) * Nk;

    // ---- Weighted sum of the rows of V ------------------------------------------------------
    // Masked keys have weight 0 and are read all the same.
    // BEGIN SOLUTION
    float sum = 0.0f;
    for (int j = 0; j < Nk; ++j) {
        const float p_j = p[query_row * Nk + j];           // the same for the whole warp
        const float v_j = v[(first_key_row + j) * d + c];  // 32 neighbours of one row
        sum += p_j * v_j;
    }
    o[query_row * d + c] = sum;
    // END SOLUTION
}
