"""The first kernels of the CUDA lessons, those that come before attention."""

from cupy_kernels.kernel_files import KernelFile

VECTOR_ADD = KernelFile("vector_add.cu", "vector_add")
TRANSPOSE = KernelFile("transpose.cu", "transpose")
ROW_SUM = KernelFile("row_sum.cu", "row_sum")
