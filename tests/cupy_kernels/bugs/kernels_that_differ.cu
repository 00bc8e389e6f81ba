// Blocks, warps and lanes that do not all do the same thing: correct code, and bugs that only one of
// many blocks has. Each kernel is launched with hundreds of blocks.

// Correct: every block goes round its own number of times.
extern "C" __global__ void turns_a_block(const int* turns, int* out) {
    __shared__ int tile[32];
    int t = threadIdx.x, sum = 0;
    for (int k = 0; k < turns[blockIdx.x]; ++k) {
        tile[t] = t * k;
        __syncthreads();
        sum += tile[31 - t];
        __syncthreads();
    }
    out[blockIdx.x * 32 + t] = sum;
}

// Correct: odd blocks meet at a barrier that even blocks never reach.
extern "C" __global__ void barrier_in_odd_blocks(const int* a, int* out) {
    __shared__ int tile[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t, x = a[i];
    if (blockIdx.x % 2) {
        tile[t] = x;
        __syncthreads();
        x = tile[63 - t];
    }
    out[i] = x;
}

// Correct: each warp takes its own branch, with shuffles inside.
extern "C" __global__ void shuffles_by_warp(const int* a, int* out) {
    int i = blockIdx.x * 128 + threadIdx.x, warp = threadIdx.x / 32, x = a[i];
    if (warp == 0) {
        x = __shfl_xor_sync(~0u, x, 1);
    } else if (warp < 3) {
        for (int k = 0; k < warp; ++k) x += __shfl_down_sync(~0u, x, 1);
    }
    if (threadIdx.x % 32 < 8) x += __shfl_xor_sync(0xff, x, 4);
    out[i] = x;
}

// Correct: whole warps leave, the others go on to meet at barriers.
extern "C" __global__ void warps_leave(const int* a, int* out) {
    __shared__ int tile[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t, warps = 1 + blockIdx.x % 4;
    if (t >= 32 * warps) return;
    tile[t] = a[i];
    __syncthreads();
    out[i] = tile[32 * warps - 1 - t];
}

// Correct: lanes of a warp take a lock in turn.
extern "C" __global__ void lock_in_turn(int* lock, int* total) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            atomicExch(total, atomicAdd(total, 0) + 1);
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// Correct: the programming guide's sum of doubles, by compare and swap behind a plain read.
extern "C" __global__ void guide_atomic_add(const double* a, unsigned long long* sum) {
    double x = a[blockIdx.x * blockDim.x + threadIdx.x];
    unsigned long long old = *sum, assumed;
    do {
        assumed = old;
        old = atomicCAS(sum, assumed, __double_as_longlong(x + __longlong_as_double(assumed)));
    } while (assumed != old);
}

// One block of many does not write a cell that it reads.
extern "C" __global__ void one_block_uninitialised(const int* a, int* out, int guilty) {
    __shared__ int tile[32];
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    if (blockIdx.x != guilty || t != 5) tile[t] = a[i];
    __syncthreads();
    out[i] = tile[31 - t];  // BUG
}

// One block of many skips its barrier.
extern "C" __global__ void one_block_races(const int* a, int* out, int guilty) {
    __shared__ int tile[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    tile[t] = a[i];
    if (blockIdx.x != guilty) __syncthreads();
    out[i] = tile[63 - t];  // BUG
}

// One block of many reads past the end.
extern "C" __global__ void one_block_too_far(const int* a, int* out, int guilty) {
    int i = blockIdx.x * 32 + threadIdx.x;
    out[i] = a[blockIdx.x == guilty && threadIdx.x == 7 ? 1000000 : i];  // BUG
}

// A block reads what a block long before it wrote.
extern "C" __global__ void reads_far_back(const int* a, int* out, int guilty) {
    int i = blockIdx.x * 32 + threadIdx.x;
    out[i] = a[i] + (blockIdx.x == guilty ? out[threadIdx.x] : 0);  // BUG
}
