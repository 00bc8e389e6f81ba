import numpy as np
import pytest

from autograder import CudaKernel
from autograder.values import plain

SOURCE = """\
extern "C" __global__ void shifted(const float* x, float* y, int n, float by) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + by;
}
"""
SHIFTED = CudaKernel(SOURCE, grid="cdiv(n, 32)", block="32")


def test_a_kernel_travels_as_a_dict_of_texts():
    sent = plain(SHIFTED)
    assert sent == {"source": SOURCE, "grid": "cdiv(n, 32)", "block": "32", "shared": "0"}
    assert CudaKernel.from_plain(sent) == SHIFTED
    assert CudaKernel.from_plain(plain([SHIFTED])[0]) == SHIFTED


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (SOURCE, "this is a str: hand in CudaKernel(source, grid=..., block=...)"),
        (None, "this is a NoneType"),
        ({"source": SOURCE}, "this is a dict"),
        (SHIFTED.as_dict() | {"block": 32}, 'block is 32: write it as text, block="..."'),
        (SHIFTED.as_dict() | {"grid": ("n", "1")}, "write it as text"),
        (SHIFTED.as_dict() | {"source": "/" * 100_001}, "longer than 100,000 characters"),
    ],
)
def test_anything_else_is_refused_in_one_line(value, words):
    with pytest.raises((TypeError, ValueError)) as raised:
        CudaKernel.from_plain(value)
    assert words in str(raised.value)


def test_its_name_and_parameters_are_those_of_its_only_kernel():
    assert SHIFTED.name == "shifted"
    assert [parameter.name for parameter in SHIFTED.parameters] == ["x", "y", "n", "by"]
    for source, words in (("int x;", "no kernel"), (SOURCE + SOURCE.replace("shifted", "b"), "2")):
        with pytest.raises(ValueError, match=words):
            _ = CudaKernel(source, "1", "1").name


def test_it_launches_on_values_by_name():
    x, y = np.arange(70, dtype=np.float32), np.zeros(70, np.float32)
    SHIFTED.launch({"y": y, "x": x, "by": 0.5, "n": 70, "more": 1}, device="sim")
    np.testing.assert_array_equal(y, x + 0.5)


def test_what_is_missing_or_wrong_in_a_launch_is_named():
    x = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match="shifted has a parameter by; there are x, y, n"):
        SHIFTED.launch({"x": x, "y": x, "n": 4}, device="sim")
    wrong = CudaKernel(SOURCE, grid="N", block="32")
    with pytest.raises(ValueError, match="grid: there is no size N; there are n"):
        wrong.launch({"x": x, "y": x, "n": 4, "by": 1.0}, device="sim")
    wrong = CudaKernel(SOURCE, grid="1", block="32", shared="4, 4")
    with pytest.raises(ValueError, match="shared: '4, 4' is one number of bytes"):
        wrong.launch({"x": x, "y": x, "n": 4, "by": 1.0}, device="sim")


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("    // YOUR CODE HERE\n", False),
        ("    // YOUR CODE HERE\n\n    y[0] = 1;\n", False),
        ("    // YOUR CODE HERE\n    // a note\n", False),
        ("    y[0] = 1;\n    // YOUR CODE HERE\n", False),
        ("    // YOUR CODE HERE\n    y[0] = 1;\n", True),
        ("    y[0] = 1;\n", True),
        ("", True),
    ],
)
def test_it_is_written_when_no_mark_stands_alone(body, written):
    source = 'extern "C" __global__ void f(float* y) {\n' + body + "}\n"
    assert CudaKernel(source, "1", "1").is_written is written
