// FlashAttention-2's forward on tensor cores: 64 rows of Q a block, K and V streamed by cp.async
// into two stages, one warp for every 16 rows. Halves in, float sums, halves out.
#include <cuda_fp16.h>
#define d 64
#define B 64
#define PITCH 72

__device__ void copy_tile(__half (*tile)[PITCH], const __half* rows, int first, int N) {
    for (int k = threadIdx.x; k < B * d / 8; k += 128) {
        int r = k / 8, x = k % 8 * 8, bytes = first + r < N ? 16 : 0;
        unsigned to = __cvta_generic_to_shared(&tile[r][x]);
        const __half* from = rows + (size_t)(bytes ? first + r : 0) * d + x;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
    }
}

__device__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int newest> __device__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory"); }

__device__ void load_matrices(unsigned (&r)[4], const __half* at) {
    unsigned from = __cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}

__device__ void load_transposed(unsigned (&r)[4], const __half* at) {
    unsigned from = __cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}

__device__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
                 " {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ unsigned packed(float low, float high) {
    __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<unsigned*>(&pair);
}

extern "C" __global__ void flash2(const __half* Q, const __half* K, const __half* V, __half* O,
                                  float* LSE, int N, float scale) {
    __shared__ __align__(16) __half sQ[B][PITCH], sK[2][B][PITCH], sV[2][B][PITCH];
    size_t head = blockIdx.y;
    Q += head * N * d, K += head * N * d, V += head * N * d, O += head * N * d, LSE += head * N;
    int first = blockIdx.x * B, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int g = lane / 4, c = lane % 4;

    copy_tile(sQ, Q, first, N);
    copy_tile(sK[0], K, 0, N);
    commit();
    copy_tile(sV[0], V, 0, N);
    commit();

    float o[8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {};
    for (int j = 0, stage = 0; j < N; j += B, stage ^= 1) {
        wait<1>();  // K has landed
        __syncthreads();
        float s[8][4] = {};
        for (int x = 0; x < d; x += 16) {
            unsigned q[4], k[4];
            load_matrices(q, &sQ[warp * 16 + lane % 16][x + lane / 16 * 8]);
            for (int n = 0; n < B; n += 16) {
                load_matrices(k, &sK[stage][n + lane / 16 * 8 + lane % 8][x + lane / 8 % 2 * 8]);
                mma(s[n / 8], q, k[0], k[1]);
                mma(s[n / 8 + 1], q, k[2], k[3]);
            }
        }
        if (j + B < N) copy_tile(sK[stage ^ 1], K, j + B, N);
        commit();

        float m_new[2] = {m[0], m[1]};
        for (int n = 0; n < 8; ++n) {
            for (int k = 0; k < 4; ++k) {
                bool inside = j + n * 8 + c * 2 + k % 2 < N;
                s[n][k] = inside ? s[n][k] * scale * 1.4426950408889634f : -INFINITY;
                m_new[k / 2] = fmaxf(m_new[k / 2], s[n][k]);
            }
        }
        for (int r = 0; r < 2; ++r) {
            m_new[r] = fmaxf(m_new[r], __shfl_xor_sync(~0u, m_new[r], 1));
            m_new[r] = fmaxf(m_new[r], __shfl_xor_sync(~0u, m_new[r], 2));
            float rescale = exp2f(m[r] - m_new[r]);
            l[r] *= rescale, m[r] = m_new[r];
            for (int n = 0; n < 8; ++n) o[n][2 * r] *= rescale, o[n][2 * r + 1] *= rescale;
        }
        for (int n = 0; n < 8; ++n) {
            for (int k = 0; k < 4; ++k) {
                s[n][k] = exp2f(s[n][k] - m[k / 2]);
                l[k / 2] += s[n][k];
            }
        }

        wait<1>();  // V has landed
        __syncthreads();
        for (int n = 0; n < B; n += 16) {
            unsigned p[4], v[4];
            for (int k = 0; k < 4; ++k) {
                float* pair = &s[n / 8 + k / 2][k % 2 * 2];
                p[k] = packed(pair[0], pair[1]);
            }
            for (int x = 0; x < d; x += 16) {
                load_transposed(v, &sV[stage][n + lane % 16][x + lane / 16 * 8]);
                mma(o[x / 8], p, v[0], v[1]);
                mma(o[x / 8 + 1], p, v[2], v[3]);
            }
        }
        if (j + B < N) copy_tile(sV[stage ^ 1], V, j + B, N);
        commit();
    }

    for (int r = 0; r < 2; ++r) {
        l[r] += __shfl_xor_sync(~0u, l[r], 1);
        l[r] += __shfl_xor_sync(~0u, l[r], 2);
        int row = first + warp * 16 + g + 8 * r;
        if (row >= N) continue;
        for (int n = 0; n < 8; ++n) {
            unsigned pair = packed(o[n][2 * r] / l[r], o[n][2 * r + 1] / l[r]);
            *reinterpret_cast<unsigned*>(O + (size_t)row * d + n * 8 + c * 2) = pair;
        }
        if (c == 0) LSE[row] = (m[r] + log2f(l[r])) * 0.6931471805599453f;
    }
}
