"""The course's own CUDA kernels as a student would hand them in."""

from autograder.cuda_kernel import CudaKernel
from cupy_kernels.first_kernels import ROW_SUM, TRANSPOSE, VECTOR_ADD
from cupy_kernels.naive_forward import SCORES, SOFTMAX, WEIGHTED_SUM

cuda_add = CudaKernel(VECTOR_ADD.source, grid="cdiv(n, 256)", block="256")

cuda_transpose = CudaKernel(
    TRANSPOSE.source, grid="cdiv(columns, 32), cdiv(rows, 32)", block="32, 8"
)

cuda_row_sum = CudaKernel(ROW_SUM.source, grid="rows", block="128")

cuda_scores = CudaKernel(
    SCORES.source, grid="cdiv(Nk, 32), cdiv(Nq, 8), batch * heads", block="32, 8"
)

cuda_softmax = CudaKernel(SOFTMAX.source, grid="rows", block="128")

cuda_weighted_sum = CudaKernel(
    WEIGHTED_SUM.source, grid="cdiv(d, 32), cdiv(Nq, 8), batch * heads", block="32, 8"
)
