"""Lesson 06: first kernels in CUDA, up to the three of naive attention."""

from autograder.exercises.cuda_attention_runs import scores_runs, softmax_runs, weighted_sum_runs
from autograder.exercises.cuda_cases import cuda_exercise
from autograder.exercises.cuda_memory_runs import add_runs, row_sum_runs, transpose_runs

EXERCISES = [
    cuda_exercise(
        id="cuda_add",
        lesson=6,
        title="z = x + y, one element a thread",
        kernel="vector_add",
        parameters="x y z n",
        runs=add_runs,
        answer="autograder.exercises.cuda_answers:cuda_add",
        hints=(
            "blockIdx.x blocks of blockDim.x threads come before this block.",
            "So thread threadIdx.x of it has element i = blockIdx.x * blockDim.x + threadIdx.x.",
            "cdiv(n, 256) blocks are more than n threads: those with i ≥ n have nothing to do.",
        ),
    ),
    cuda_exercise(
        id="cuda_transpose",
        lesson=6,
        title="Y = Xᵀ through shared memory",
        kernel="transpose",
        parameters="x y rows columns",
        runs=transpose_runs,
        answer="autograder.exercises.cuda_answers:cuda_transpose",
        hints=(
            "threadIdx.x has to run along a row twice: of X when loading, of Y when storing.",
            "Load tile[r][threadIdx.x], store tile[threadIdx.x][r]: the turn is on the chip.",
            "Between the two every thread waits for all others: __syncthreads().",
            "A column of tile[32][32] is one bank. In tile[32][33] it is 32 banks.",
        ),
    ),
    cuda_exercise(
        id="cuda_row_sum",
        lesson=6,
        title="The sum of each row, by shuffles and shared memory",
        kernel="row_sum",
        parameters="x y n",
        runs=row_sum_runs,
        answer="autograder.exercises.cuda_answers:cuda_row_sum",
        hints=(
            "A thread's share: elements threadIdx.x, threadIdx.x + blockDim.x, and so on.",
            "__shfl_xor_sync(ALL_LANES, sum, apart) is the value of `sum` in the lane that is "
            "`apart` away. Add it, for apart = 16, 8, 4, 2, 1.",
            "Every lane of a warp has its sum now. Lane 0 puts it into per_warp[warp]; thread 0 "
            "may read it after a __syncthreads().",
        ),
    ),
    cuda_exercise(
        id="cuda_scores",
        lesson=6,
        title="Naive attention 1 of 3: S = scale · Q Kᵀ",
        kernel="naive_scores",
        parameters="q k s heads kv_heads Nq Nk d scale causal",
        runs=scores_runs,
        answer="autograder.exercises.cuda_answers:cuda_scores",
        hints=(
            "x runs along the keys: j = blockIdx.x * blockDim.x + threadIdx.x. In y it is i.",
            "Element c of a query is q[query_row * d + c], of a key k[key_row * d + c].",
            "A key is visible when j <= i + Nk - Nq. A hidden score is −INFINITY, and stored too.",
        ),
    ),
    cuda_exercise(
        id="cuda_softmax",
        lesson=6,
        title="Naive attention 2 of 3: P = softmax(S), and the LSE",
        kernel="naive_softmax",
        parameters="s p lse Nk",
        runs=softmax_runs,
        answer="autograder.exercises.cuda_answers:cuda_softmax",
        hints=(
            "Three loops of the same form as in row_sum: for its maximum, for its sum, to store.",
            "expf(s[j] - shift) in the second and in the third loop.",
            "lse[row] = m + logf(l), by one thread.",
        ),
    ),
    cuda_exercise(
        id="cuda_weighted_sum",
        lesson=6,
        title="Naive attention 3 of 3: O = P V",
        kernel="naive_weighted_sum",
        parameters="p v o heads kv_heads Nq Nk d",
        runs=weighted_sum_runs,
        answer="autograder.exercises.cuda_answers:cuda_weighted_sum",
        hints=(
            "x runs along the columns of O this time, y along the queries.",
            "O[i, c] is the sum over j of P[i, j] · V[j, c].",
            "p[query_row * Nk + j] and v[(first_key_row + j) * d + c].",
        ),
    ),
]
