// Naive attention, kernel 1 of 3: S = scale · Q Kᵀ, written to HBM in full.
//
// One thread computes one score: the dot product of query row i and key row j. The 32 threads of a
// warp take 32 neighbouring keys of one query, so each of its loads of Q is one address for all
// (one sector), and each of its loads of K touches 32 rows (32 sectors, 4 of their 32 bytes used).
//
//   grid  (⌈Nk / 32⌉, ⌈Nq / 8⌉, batch · heads)      block (32, 8)

extern "C" __global__ void naive_scores(
    const float* __restrict__ q,  // [batch, heads, Nq, d]
    const float* __restrict__ k,  // [batch, kv_heads, Nk, d]
    float* __restrict__ s,        // [batch, heads, Nq, Nk]
    int heads, int kv_heads, int Nq, int Nk, int d, float scale, int causal) {
    // ---- Which score is mine ----------------------------------------------------------------
    // j is the key (along x), i the query (along y); threads that stick out have none.
    // BEGIN SOLUTION
    const int j = blockIdx.x * blockDim.x + threadIdx.x;  // key
    const int i = blockIdx.y * blockDim.y + threadIdx.y;  // query
    if (i >= Nq || j >= Nk) return;
    // END SOLUTION

    const int head = blockIdx.z % heads, batch = blockIdx.z / heads;
    const int kv_head = head / (heads / kv_heads);  // query heads of one group share K and V

    // 64-bit row numbers: batch · heads · Nq · Nk passes 2³¹ long before memory runs out.
    const long long query_row = (long long)blockIdx.z * Nq + i;
    const long long key_row = ((long long)batch * kv_heads + kv_head) * Nk + j;

    // ---- Dot product ------------------------------------------------------------------------
    float score = 0.0f;
    // BEGIN SOLUTION
    for (int c = 0; c < d; ++c) {
        const float q_c = q[query_row * d + c];  // the same for the whole warp
        const float k_c = k[key_row * d + c];    // 32 rows, one for each lane
        score += q_c * k_c;
    }
    // END SOLUTION

    // ---- Mask and store ---------------------------------------------------------------------
    // Bottom-right aligned: the last query sees all keys, also when Nq ≠ Nk. A masked score is
    // still computed and stored; this version saves nothing by being causal.
    // BEGIN SOLUTION
    const bool visible = !causal || j <= i + Nk - Nq;
    s[query_row * Nk + j] = visible ? scale * score : -INFINITY;
    // END SOLUTION
}
