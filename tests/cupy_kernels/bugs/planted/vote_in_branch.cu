extern "C" __global__ void vote_in_branch(const int* a, int* out) {
    int i = threadIdx.x;
    out[i] = 0;
    if (a[i] % 2) {
        out[i] = __ballot_sync(0xffffffff, a[i] > 10);  // BUG
    }
}
