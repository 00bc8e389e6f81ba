// FlashAttention-1's loops in float: K and V tiles outside, Q tiles inside, O, l and m in HBM
// between them. One block a head; four lanes share a row of Q.
#define d 64
#define B 32
#define PITCH (d + 4)

__device__ void load_tile(float (*tile)[PITCH], const float* rows, int first, int N) {
    for (int k = threadIdx.x; k < B * d / 4; k += 128) {
        int r = k / (d / 4), x = k % (d / 4) * 4;
        float4 v = make_float4(0, 0, 0, 0);
        if (first + r < N) v = *reinterpret_cast<const float4*>(rows + (size_t)(first + r) * d + x);
        *reinterpret_cast<float4*>(&tile[r][x]) = v;
    }
}

extern "C" __global__ void flash1(const float* Q, const float* K, const float* V, float* O, float* l,
                                  float* m, int N, float scale) {
    __shared__ __align__(16) float sQ[B][PITCH], sK[B][PITCH], sV[B][PITCH];
    __shared__ float sP[B][B + 1];
    size_t head = blockIdx.x;
    Q += head * N * d, K += head * N * d, V += head * N * d, O += head * N * d;
    l += head * N, m += head * N;
    int row = threadIdx.x / 4, quarter = threadIdx.x % 4;

    for (int j = 0; j < N; j += B) {
        load_tile(sK, K, j, N);
        load_tile(sV, V, j, N);
        for (int i = 0; i < N; i += B) {
            load_tile(sQ, Q, i, N);
            __syncthreads();

            float s[8], m_tile = -INFINITY;
            for (int k = 0; k < 8; ++k) {
                int key = quarter + 4 * k;
                float dot = 0.0f;
                for (int x = 0; x < d; ++x) dot += sQ[row][x] * sK[key][x];
                s[k] = j + key < N ? dot * scale : -INFINITY;
                m_tile = fmaxf(m_tile, s[k]);
            }
            m_tile = fmaxf(m_tile, __shfl_xor_sync(~0u, m_tile, 1));
            m_tile = fmaxf(m_tile, __shfl_xor_sync(~0u, m_tile, 2));

            bool inside = i + row < N, first = j == 0;
            float m_old = inside && !first ? m[i + row] : -INFINITY;
            float l_old = inside && !first ? l[i + row] : 0.0f;
            float m_new = fmaxf(m_old, m_tile), l_tile = 0.0f;
            for (int k = 0; k < 8; ++k) {
                float p = __expf(s[k] - m_new);
                sP[row][quarter + 4 * k] = p;
                l_tile += p;
            }
            l_tile += __shfl_xor_sync(~0u, l_tile, 1);
            l_tile += __shfl_xor_sync(~0u, l_tile, 2);
            __syncwarp();

            float kept = __expf(m_old - m_new) * l_old, l_new = kept + l_tile;
            float4 o[4] = {};
            for (int key = 0; key < B; ++key) {
                float p = sP[row][key];
                for (int x = 0; x < 4; ++x) {
                    float4 v = *reinterpret_cast<const float4*>(&sV[key][quarter * 4 + 16 * x]);
                    o[x].x += p * v.x, o[x].y += p * v.y, o[x].z += p * v.z, o[x].w += p * v.w;
                }
            }
            float4* out = reinterpret_cast<float4*>(O + (size_t)(i + row) * d) + quarter;
            for (int x = 0; x < 4 && inside; ++x) {
                float4 old = first ? make_float4(0, 0, 0, 0) : out[4 * x];
                old.x = (old.x * kept + o[x].x) / l_new, old.y = (old.y * kept + o[x].y) / l_new;
                old.z = (old.z * kept + o[x].z) / l_new, old.w = (old.w * kept + o[x].w) / l_new;
                out[4 * x] = old;
            }
            __syncwarp();
            if (inside && quarter == 0) l[i + row] = l_new, m[i + row] = m_new;
            __syncthreads();
        }
    }
}
