// Eight and sixteen bytes at a time, from global and shared memory.
extern "C" __global__ void vector_loads(const float4* a, const int2* b, const double2* c,
                                        const uchar4* d, float4* out4, int2* out2, double2* outd,
                                        uchar4* outc) {
    __shared__ float4 tile[64];
    __shared__ int2 pairs[64];
    int i = threadIdx.x;
    tile[i] = a[i];
    pairs[i] = b[i];
    __syncthreads();
    float4 v = tile[63 - i];
    out4[i] = make_float4(v.w, v.z, v.y, v.x);
    int2 p = pairs[i ^ 1];
    out2[i] = make_int2(p.y, p.x);
    outd[i] = make_double2(c[i].y, c[i].x);
    uchar4 q = d[i];
    outc[i] = make_uchar4(q.z + 1, q.y, q.x, q.w);
}
