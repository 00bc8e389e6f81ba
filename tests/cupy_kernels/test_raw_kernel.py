import sys

import ml_dtypes
import numpy as np
import pytest

from cupy_kernels import CompileError, NvrtcNotFound, RawKernel, RawModule, compile_ptx, simulator
from tests.cupy_kernels import fake_cupy

AXPY = """extern "C" __global__ void axpy(
    const float* x,  // [n]
    float* y,        // [n]
    int n, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""

MODULE = """
template <typename T> __global__ void fill(T* x, int n, T value) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}
__constant__ float table[3] = {1.0f, 2.0f, 4.0f};
extern "C" __global__ void look_up(float* x) {
    __shared__ float tile[32];
    tile[threadIdx.x] = table[threadIdx.x % 3];
    __syncthreads();
    x[threadIdx.x] = tile[31 - threadIdx.x];
}
__global__ void mangled(float* x) { x[0] = 1.0f; }
"""

DYNAMIC = """extern "C" __global__ void reverse(float* x, int n) {
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = tile[n - 1 - i];
}
"""


def axpy_args(n=100):
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    return x, y, n, np.float32(2)


# ---- in the simulator -----------------------------------------------------------------------


def test_a_launch_changes_the_numpy_arrays_in_place():
    x, y, n, a = axpy_args()
    RawKernel(AXPY, "axpy", device="sim")((4,), (32,), (x, y, n, a))
    np.testing.assert_array_equal(y, 1 + 2 * np.arange(n, dtype=np.float32))
    np.testing.assert_array_equal(x, np.arange(n))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float64])
def test_template_instances_by_name_expression(dtype):
    name = {"float32": "fill<float>", "int32": "fill<int>", "float64": "fill<double>"}
    expression = name[np.dtype(dtype).name]
    module = RawModule(code=MODULE, name_expressions=tuple(name.values()), device="sim")
    x = np.zeros(40, dtype)
    module.get_function(expression)((2,), (32,), (x, 40, dtype(7)))
    assert (x == 7).all()
    RawKernel(MODULE, expression, device="sim")((2,), (32,), (x, 40, dtype(9)))
    assert (x == 9).all()


def test_a_wrong_dtype_for_a_template_instance_is_refused():
    kernel = RawKernel(MODULE, "fill<float>", device="sim")
    with pytest.raises(TypeError, match=r"argument 1 \(float\* x\) has dtype int32"):
        kernel((1,), (32,), (np.zeros(4, np.int32), 4, np.float32(1)))


def test_constant_and_static_shared_memory():
    x = np.zeros(32, np.float32)
    RawModule(code=MODULE, device="sim").get_function("look_up")((1,), (32,), (x,))
    np.testing.assert_array_equal(x, np.array([1, 2, 4], np.float32)[np.arange(32) % 3][::-1])


def test_a_misnamed_kernel_lists_those_there_are():
    module = RawModule(code=MODULE, device="sim")
    with pytest.raises(ValueError, match=r'kernel.cu has no kernel "lookup" \(it has: look_up, '):
        module.get_function("lookup")((1,), (32,), ())
    with pytest.raises(
        ValueError, match=r'name of kernel "mangled" is mangled by C.*: write extern'
    ):
        module.get_function("mangled")((1,), (32,), ())


def test_dynamic_shared_memory_and_the_opt_in_beyond_48_kb():
    n = 15_000
    x = np.arange(n, dtype=np.float32)
    kernel = RawKernel(DYNAMIC, "reverse", device="sim")
    assert kernel.max_dynamic_shared_size_bytes == 48 * 1024
    with pytest.raises(ValueError, match=r"set kernel.max_dynamic_shared_size_bytes = 60000"):
        kernel((1,), (256,), (x, n), shared_mem=4 * n)
    kernel.max_dynamic_shared_size_bytes = 4 * n
    kernel((1,), (256,), (x, n), shared_mem=4 * n)
    np.testing.assert_array_equal(x, np.arange(n, dtype=np.float32)[::-1])
    with pytest.raises(ValueError, match="an SM has 232,448"):
        kernel.max_dynamic_shared_size_bytes = 240_000


def test_cupys_attributes():
    kernel = RawModule(code=MODULE, device="sim").get_function("look_up")
    assert kernel.shared_size_bytes == 128
    assert kernel.const_size_bytes == 12
    assert kernel.local_size_bytes == 0
    assert 0 < kernel.num_regs <= 255
    assert kernel.max_threads_per_block == 1024
    assert kernel.max_dynamic_shared_size_bytes == 48 * 1024 - 128
    assert kernel.attributes["num_regs"] == kernel.num_regs
    assert kernel.ptx == compile_ptx(MODULE).text
    assert [p.shape for p in RawKernel(AXPY, "axpy").signature.parameters[:2]] == ["[n]", "[n]"]


def test_launch_bounds_limit_the_block():
    source = AXPY.replace("void axpy(", "void __launch_bounds__(64) axpy(")
    kernel = RawKernel(source, "axpy", device="sim")
    assert kernel.max_threads_per_block == 64
    with pytest.raises(ValueError, match=r"block \(128, 1, 1\) has 128 threads, at most 64 fit"):
        kernel((1,), (128,), axpy_args())


@pytest.mark.parametrize(
    ("grid", "block", "told"),
    [
        ((0,), (32,), "axpy: grid.x is 0"),
        ((1, 70_000), (32,), "axpy: grid.y is 70000: the limit is 65,535"),
        ((1,), (2048,), "axpy: block.x is 2048: the limit is 1,024"),
        ((1,), (64, 32), "has 2,048 threads"),
        ((100 / 32,), (32,), "round up with"),
    ],
)
def test_an_impossible_launch_is_one_clear_line(grid, block, told):
    with pytest.raises((TypeError, ValueError)) as caught:
        RawKernel(AXPY, "axpy", device="sim")(grid, block, axpy_args())
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_argument_leaves_the_arrays_untouched():
    x, y, n, _ = axpy_args()
    with pytest.raises(TypeError, match=r"argument 4 \(float a\) is a Python float"):
        RawKernel(AXPY, "axpy", device="sim")((4,), (32,), (x, y, n, 2.0))
    assert (y == 1).all()


def test_compile_errors_come_at_the_launch_or_on_demand():
    module = RawModule(code=AXPY.replace("a * x[i]", "b * x[i]"), device="sim", filename="mine.cu")
    with pytest.raises(CompileError, match=r"mine.cu\(6\): error: identifier .b. is undefined"):
        module.compile()
    with pytest.raises(CompileError):
        module.get_function("axpy")((1,), (32,), axpy_args())


def test_a_bug_caught_on_the_way_names_the_students_file_and_array():
    x, y, _, a = axpy_args()
    with pytest.raises(simulator.Fault) as caught:
        RawKernel(AXPY, "axpy", device="sim", filename="mine.cu")((4,), (32,), (x, y, 120, a))
    assert "mine.cu:6" in str(caught.value)
    assert caught.value.kind == "out of bounds"
    assert caught.value.array in ("x", "y")


def test_an_endless_loop_ends_at_the_limit():
    source = 'extern "C" __global__ void spin(volatile int* x) { while (x[0] == 0) {} }'
    kernel = RawKernel(source, "spin", device="sim")
    kernel.limits = simulator.Limits(steps=2_000)
    with pytest.raises(simulator.Fault, match="step limit"):
        kernel((1,), (32,), (np.zeros(1, np.int32),))


def test_printf_reaches_the_screen(capsys):
    source = (
        'extern "C" __global__ void hello(int n) { printf("thread %d of %d\\n", threadIdx.x, n); }'
    )
    RawKernel(source, "hello", device="sim")((1,), (2,), (7,))
    assert capsys.readouterr().out == "thread 0 of 7\nthread 1 of 7\n"


def test_only_nvrtc_compiles_here():
    with pytest.raises(ValueError, match="backend is 'nvcc'"):
        RawKernel(AXPY, "axpy", backend="nvcc")


def test_without_nvrtc_the_error_comes_before_the_launch(no_nvrtc):
    with pytest.raises(NvrtcNotFound, match="NVRTC is not installed"):
        RawKernel(AXPY, "axpy", device="sim")((1,), (32,), axpy_args())


# ---- what is handed to CuPy (no GPU: a stand-in for CuPy runs a Python function) --------------


@pytest.fixture
def cupy(monkeypatch, forget_gpu, fresh_cache):
    def axpy(x, y, n, a):
        y.view(np.float32)[:n] += a * x.view(np.float32)[:n]

    fake = fake_cupy.make(axpy)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake


def test_numpy_arrays_go_to_the_gpu_and_come_back(cupy):
    x, y, n, a = axpy_args()
    kernel = RawKernel(AXPY, "axpy")
    assert kernel.device == "gpu"
    kernel((4,), (32,), (x, y, n, a), shared_mem=16)
    np.testing.assert_array_equal(y, 1 + 2 * x)
    [(grid, block, args, shared_mem)] = cupy.kernels["axpy"].calls
    assert (grid, block, shared_mem) == ((4, 1, 1), (32, 1, 1), 16)
    assert (type(args[2]), type(args[3])) == (np.int32, np.float32)


def test_an_array_passed_twice_is_one_array_there(cupy):
    x = np.ones(8, np.float32)
    RawKernel(AXPY, "axpy")((1,), (32,), (x, x, 8, np.float32(2)))
    np.testing.assert_array_equal(x, 3)


def test_cupy_arrays_stay_on_the_gpu(cupy):
    x, y = fake_cupy.Array(np.ones(8, "f")), fake_cupy.Array(np.ones(8, "f"))
    RawKernel(AXPY, "axpy")((1,), (32,), (x, y, 8, np.float32(2)))
    assert cupy.kernels["axpy"].calls[0][2][0] is x
    np.testing.assert_array_equal(y.memory, 3)


def test_cupy_arrays_also_work_in_the_simulator(cupy):
    x, y = fake_cupy.Array(np.ones(8, "f")), fake_cupy.Array(np.ones(8, "f"))
    RawKernel(AXPY, "axpy", device="sim")((1,), (32,), (x, y, 8, np.float32(2)))
    np.testing.assert_array_equal(y.memory, 3)
    RawKernel(AXPY, "axpy", device="sim")((1,), (32,), (y, y, 8, np.float32(2)))
    np.testing.assert_array_equal(y.memory, 9, "passed twice, it is one array")
    assert cupy.kernels == {}


def test_bf16_scalars_travel_by_value(monkeypatch, forget_gpu, fresh_cache):
    source = (
        '#include <cuda_bf16.h>\nextern "C" __global__ void put(__nv_bfloat16* x, __nv_bfloat16 v)'
        " { x[0] = v; }"
    )

    def put(x, value):
        assert value.shape == (1,) and value.dtype.itemsize == 2
        x[:2] = value.view(np.uint8)

    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make(put))
    x = np.zeros(1, ml_dtypes.bfloat16)
    RawKernel(source, "put")((1,), (1,), (x, ml_dtypes.bfloat16(3)))
    assert x[0] == 3


def test_structs_travel_by_value(monkeypatch, forget_gpu, fresh_cache):
    source = (
        "struct Pair { int first; float second; };\n"
        'extern "C" __global__ void take(float* x, Pair p) { x[0] = p.first + p.second; }'
    )

    def take(x, pair):
        assert pair.dtype == "V8"
        x.view(np.float32)[0] = sum(pair.view([("first", "i4"), ("second", "f4")])[0].item())

    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make(take))
    pair = np.array([(2, 0.5)], dtype=[("first", "i4"), ("second", "f4")])
    for device, argument in (("gpu", pair), ("gpu", pair[0]), ("sim", pair)):
        x = np.zeros(1, np.float32)
        RawKernel(source, "take", device=device)((1,), (1,), (x, argument))
        assert x[0] == 2.5


def test_the_opt_in_reaches_the_gpus_kernel(cupy):
    kernel = RawKernel(AXPY, "axpy")
    kernel.max_dynamic_shared_size_bytes = 100_000
    kernel((1,), (32,), axpy_args(), shared_mem=90_000)
    assert cupy.kernels["axpy"].max_dynamic_shared_size_bytes == 100_000


# ---- on a GPU -------------------------------------------------------------------------------


@pytest.mark.gpu
def test_the_gpu_and_the_simulator_agree(gpu):
    for device in ("gpu", "sim"):
        x, y, n, a = axpy_args()
        RawKernel(AXPY, "axpy", device=device)((4,), (32,), (x, y, n, a))
        np.testing.assert_array_equal(y, 1 + 2 * np.arange(n, dtype=np.float32))


@pytest.mark.gpu
def test_the_gpu_reports_what_the_compiler_reported(gpu):
    kernel = RawModule(code=MODULE, device="gpu").get_function("look_up")
    theirs = kernel._backend._kernel
    assert kernel.num_regs == theirs.num_regs
    assert kernel.shared_size_bytes == theirs.shared_size_bytes
    assert kernel.const_size_bytes == theirs.const_size_bytes
    assert kernel.local_size_bytes == theirs.local_size_bytes
