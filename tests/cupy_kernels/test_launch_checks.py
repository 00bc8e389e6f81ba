import ml_dtypes
import numpy as np
import pytest

from cupy_kernels.launch_checks import bind_arguments, check_block, check_shared, geometry
from cupy_kernels.signature import signatures

SOURCE = """
extern "C" __global__ void k(const float* x, float* y, int n, float scale, unsigned char flag) {}
extern "C" __global__ void halves(const half* x, __nv_bfloat16* y, __nv_fp8_e4m3* z, float4* v) {}
extern "C" __global__ void numbers(double a, long long b, bool c, __half d, __nv_bfloat16 e) {}
"""
X = np.zeros(4, np.float32)
ONE = np.float32(1)


def bind(name, *args):
    return [value for _, value in bind_arguments(name, signatures(SOURCE)[name], args)]


def refusal(name, *args):
    with pytest.raises((TypeError, ValueError)) as caught:
        bind(name, *args)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def k(x=X, y=X, n=4, scale=ONE, flag=1):
    return refusal("k", x, y, n, scale, flag)


def test_right_arguments_come_back_in_the_parameters_own_width():
    _, _, n, scale, flag = bind("k", X, X, 4, np.float32(0.5), np.int64(3))
    assert (type(n), type(scale), type(flag)) == (np.int32, np.float32, np.uint8)
    assert (n, scale, flag) == (4, 0.5, 3)


def test_a_wrong_count_lists_the_parameters():
    assert refusal("k", X, X) == "k takes 5 arguments (x, y, n, scale, flag), got 2"


def test_a_wrong_dtype_names_the_parameter_and_both_dtypes():
    told = k(y=np.zeros(4))
    assert told == "k: argument 2 (float* y) has dtype float64, the pointer reads float32"


def test_a_number_for_a_pointer_and_an_array_for_a_number():
    assert k(x=3) == "k: argument 1 (const float* x) is of type int: a pointer needs an array"
    assert k(n=X) == "k: argument 3 (int n) is an array of shape (4,), it takes a number"


def test_a_python_float_would_arrive_as_half_a_double():
    told = k(scale=0.5)
    assert told == (
        "k: argument 4 (float scale) is a Python float, the parameter is float32: "
        "pass np.float32(...)"
    )
    assert "is a float64" in k(scale=np.float64(0.5))
    assert "Python int" in k(scale=1)


def test_integers_must_be_whole_and_fit():
    assert k(n=2.5) == "k: argument 3 (int n) is 2.5, it takes a whole number"
    assert "is 2147483648, outside int32's -2147483648 to 2147483647" in k(n=2**31)
    assert "is -1, outside uint8's 0 to 255" in k(flag=-1)


def test_memory_must_be_contiguous_and_an_output_writable():
    assert "is not C-contiguous (shape (2, 2), strides (4, 8))" in k(x=np.zeros((2, 2), "f").T)
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    assert "argument 2 (float* y) is read-only" in k(y=frozen)
    bind("k", frozen, X, 1, np.float32(1), 0)


def test_16_and_8_bit_floats_and_vectors():
    halves = np.zeros(4, np.float16)
    bf16 = np.zeros(4, ml_dtypes.bfloat16)
    fp8 = np.zeros(4, np.uint8)
    bind("halves", halves, bf16, fp8, X)
    bind("halves", None, bf16.view(np.uint16), fp8.view(ml_dtypes.float8_e4m3fn), X)
    assert "reads float16" in refusal("halves", bf16, bf16, fp8, X)
    assert "reads bfloat16" in refusal("halves", halves, halves, fp8, X)
    assert "reads float32" in refusal("halves", halves, bf16, fp8, halves)


def test_scalars_of_every_kind():
    bound = bind("numbers", 0.5, 2**40, True, np.float16(2), ml_dtypes.bfloat16(3))
    kinds = (np.float64, np.int64, np.bool_, np.float16, ml_dtypes.bfloat16)
    assert tuple(map(type, bound)) == kinds
    assert "pass ml_dtypes.bfloat16(...)" in refusal("numbers", 0.5, 1, True, np.float16(2), 3.0)


def test_without_a_signature_arguments_pass_as_they_are():
    pairs = bind_arguments("macro", None, [X, np.int32(1)])
    assert [(p.name, p.is_output) for p, _ in pairs] == [
        ("argument 1", True),
        ("argument 2", False),
    ]


def test_grid_and_block_are_filled_up():
    limits = (1024, 1024, 64)
    assert geometry("k", "block", (32,), limits) == (32, 1, 1)
    assert geometry("k", "block", 32, limits) == (32, 1, 1)
    assert geometry("k", "block", (np.int64(8), 4, 2), limits) == (8, 4, 2)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ((1, 2, 3, 4), "block has 4 dimensions, CUDA has one to three"),
        ((), "block has 0 dimensions"),
        ((4, 0), "block.y is 0: every dimension must be at least 1"),
        ((2.5,), "block.x is 2.5, not a whole number: round up with -(-n // tile)"),
        ((1, 1, 65), "block.z is 65: the limit is 64"),
    ],
)
def test_an_impossible_geometry_names_the_axis(value, told):
    with pytest.raises((TypeError, ValueError), match="k: ") as caught:
        geometry("k", "block", value, (1024, 1024, 64))
    assert told in str(caught.value)


def test_too_many_threads():
    check_block("k", (32, 32, 1), 1024)
    with pytest.raises(ValueError, match=r"block \(32, 33, 1\) has 1,056 threads, at most 1,024"):
        check_block("k", (32, 33, 1), 1024)
    with pytest.raises(ValueError, match="__launch_bounds__"):
        check_block("k", (256, 1, 1), 128)


def test_shared_memory_beyond_48_kb_needs_the_opt_in():
    check_shared("k", static=1024, dynamic=47 * 1024, allowed=47 * 1024, device_limit=232448)
    with pytest.raises(ValueError, match="max_dynamic_shared_size_bytes = 50000"):
        check_shared("k", static=0, dynamic=50_000, allowed=49_152, device_limit=232448)
    with pytest.raises(ValueError, match="an SM has 232,448"):
        check_shared("k", static=1, dynamic=232_448, allowed=232_448, device_limit=232448)
    with pytest.raises(ValueError, match="shared_mem is -4"):
        check_shared("k", static=0, dynamic=-4, allowed=49_152, device_limit=232448)
