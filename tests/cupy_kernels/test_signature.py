import re

import pytest

from cupy_kernels.nvrtc import compile_ptx
from cupy_kernels.signature import base_name, signatures
from tests.cupy_kernels.sampler import SAMPLER

SOURCE = """
// extern "C" __global__ void in_a_comment(float* no) {}
#define THREADS 128
__device__ float helper(float x) { return x; }

template <typename T, int D = 64>
__global__ void __launch_bounds__(THREADS, 2) tiled(
    const T* __restrict__ q,  // [batch, heads, N, d]
    T* o, /* the output */    // [N] rows
    const __grid_constant__ CUtensorMap map,
    unsigned int n, float scale, int* const z) {}

extern "C" __global__ void plain(half*x, unsigned char const* b, long long n) { if (n) return; }
extern "C" __launch_bounds__(64) __global__ void bounds_first(float v[], int n) {}
__global__ void __cluster_dims__(2, 1, 1) nothing() {}
"""


def test_every_kernel_is_found_and_nothing_else():
    assert list(signatures(SOURCE)) == ["tiled", "plain", "bounds_first", "nothing"]


def test_parameters_have_names_types_and_constness():
    tiled = signatures(SOURCE)["tiled"]
    assert [str(p) for p in tiled.parameters] == [
        "const T* q",
        "T* o",
        "const CUtensorMap map",
        "unsigned int n",
        "float scale",
        "int* z",
    ]
    assert [p.is_output for p in tiled.parameters] == [False, True, False, False, False, True]
    plain = signatures(SOURCE)["plain"]
    assert [str(p) for p in plain.parameters] == [
        "half* x",
        "const unsigned char* b",
        "long long n",
    ]
    assert signatures(SOURCE)["bounds_first"].parameters[0].is_pointer
    assert signatures(SOURCE)["nothing"].parameters == ()


def test_the_shape_comment_of_a_parameter_is_kept():
    assert signatures(SOURCE)["tiled"].parameters[0].shape == "[batch, heads, N, d]"
    assert signatures(SOURCE)["plain"].parameters[0].shape == ""


def test_a_template_instance_has_its_types_put_in():
    instance = signatures(SOURCE)["tiled"].instance("tiled<__half, 128>")
    assert [p.type for p in instance.parameters[:2]] == ["__half", "__half"]
    assert instance.name == "tiled<__half, 128>"


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("scale", "scale"),
        ("scale<float, 2>", "scale"),
        ("course::scale<float>", "scale"),
        ("_Z5scalePf", "scale"),
        ("_Z5scaleIfLi64EEvPKT_PS0_i", "scale"),
        ("_ZN6course5scaleEPf", "scale"),
    ],
)
def test_the_plain_name_inside_a_longer_one(name, base):
    assert base_name(name) == base


def test_the_compiler_sees_the_same_parameters_in_every_kernel_of_the_sampler():
    kernels = 0
    for case in SAMPLER.values():
        ptx = compile_ptx(
            case.source, name_expressions=case.name_expressions, filename=case.file.name
        ).text
        declared = signatures(case.source)
        for name, listed in re.findall(r"\.entry (\w+)\(([^)]*)\)", ptx):
            compiled = re.findall(r"\.param ([^,\n]+)", listed)
            parameters = declared[base_name(name)].parameters
            assert len(parameters) == len(compiled), case.name
            for parameter, ptx_type in zip(parameters, compiled, strict=True):
                assert ".u64" in ptx_type or not parameter.is_pointer, (case.name, parameter)
            kernels += 1
    assert kernels >= len(SAMPLER)
