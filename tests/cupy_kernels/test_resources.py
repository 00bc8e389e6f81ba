import json
import re

import pytest

from cupy_kernels import resources, shipped_ptx
from cupy_kernels.__main__ import main
from cupy_kernels.elf_info import kernel_infos
from cupy_kernels.nvrtc import KERNEL_DIR, compile_cubin
from cupy_kernels.occupancy import GPUS, occupancy
from cupy_kernels.resources import all_resources

SOURCE = """
__constant__ float table[100];
extern "C" __global__ void plain(float* x) { x[threadIdx.x] = 1.0f; }
extern "C" __global__ void __launch_bounds__(256) shared(float* x, int n) {
    __shared__ float tile[300];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[n] = tile[n] + table[n];
}
extern "C" __global__ void indexed(float* x, int n) {
    float a[64];
    for (int i = 0; i < 64; i++) a[i] = x[i * n];
    for (int i = 0; i < n; i++) a[(i * 7) % 64] += a[i % 64];
    for (int i = 0; i < 64; i++) x[i] = a[i];
}
template <int N> __device__ float tree(const float* x) {
    return tree<N - 1>(x) * x[N] + tree<N - 1>(x + N);
}
template <> __device__ float tree<0>(const float* x) { return x[0]; }
template <typename T> __global__ void fill(T* x) { x[threadIdx.x] = 2; }
"""

# Ninety-six values alive at once, in 32 registers.
CROWDED = """extern "C" __global__ void crowded(const float* x, float* y) {
    float a[96];
#pragma unroll
    for (int i = 0; i < 96; i++) a[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 96; i++) y[i * 1024 + threadIdx.x] = a[95 - i] * a[(i * 7) % 96];
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a"])
def test_the_elf_and_the_log_agree_on_registers(arch):
    cubin = compile_cubin(SOURCE, arch=arch)
    entries = re.findall(r"entry function '(\w+)'[\s\S]*?Used (\d+) registers", cubin.log)
    assert {name: info.registers for name, info in kernel_infos(cubin.image).items()} == {
        name: int(count) for name, count in entries
    }


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a"])
def test_shared_constant_and_launch_bounds(arch):
    shared = resources(SOURCE, "shared", arch=arch)
    assert shared.static_shared_bytes == 300 * 4
    assert shared.constant_bytes == 100 * 4
    assert shared.max_threads == 256
    assert resources(SOURCE, "plain", arch=arch).static_shared_bytes == 0
    assert resources(SOURCE, "plain", arch=arch).max_threads == 1024


def test_an_indexed_array_is_stack_and_no_spill():
    indexed = resources(SOURCE, "indexed")
    assert indexed.stack_bytes == 64 * 4
    assert indexed.spills is False


def test_spills_are_counted_in_bytes():
    crowded = resources(CROWDED, options=("-maxrregcount=32",))
    assert crowded.registers <= 32
    assert crowded.spill_store_bytes >= (96 - 32) * 4
    assert crowded.spill_load_bytes >= crowded.spill_store_bytes
    assert crowded.spills is True
    assert resources(CROWDED).spills is False


def test_a_template_instance_is_named_as_an_expression():
    fill = resources(SOURCE, "fill<float>")
    assert fill.kernel == "fill<float>"
    assert "fill&lt;float&gt;" in fill._repr_html_()
    assert "fill<float>" in repr(fill)


def test_ptxas_warnings_are_kept():
    source = (
        'extern "C" __global__ void k() { asm volatile("setmaxnreg.inc.sync.aligned.u32 128;"); }'
    )
    [warning] = resources(source).warnings
    assert "setmaxnreg" in warning
    assert "setmaxnreg" in repr(resources(source))


def test_an_open_or_wrong_choice_lists_the_kernels():
    with pytest.raises(ValueError, match="has several kernels: name one of indexed, plain, shared"):
        resources(SOURCE)
    with pytest.raises(ValueError, match='has no kernel "none": name one of indexed'):
        resources(SOURCE, "none")


def test_what_the_log_does_not_say_is_not_measured(monkeypatch):
    monkeypatch.setitem(all_resources.__globals__, "PROPERTIES", re.compile("(?P<name>never said)"))
    plain = resources(SOURCE, "plain")
    assert plain.spills is None
    assert "spills                  not measured" in repr(plain)
    assert plain.to_dict()["spill_load_bytes"] is None


# By hand: a warp takes its registers in units of 256, 65,536 are there; 228 KB of shared memory,
# one of them for each block.
@pytest.mark.parametrize(
    ("threads", "registers", "shared", "gpu", "blocks", "limited_by"),
    [
        (256, 32, 0, "H200", 8, "registers"),  # 8 warps × 1,024 registers: 64 warps, all there are
        (128, 122, 0, "H200", 4, "registers"),  # 4,096 a warp: 16 warps
        (128, 32, 100 * 1024, "H200", 2, "shared memory"),  # 101 KB a block
        (128, 32, 114 * 1024, "H200", 1, "shared memory"),  # 115 KB: two would need 230
        (384, 168, 227 * 1024, "H200", 1, "registers"),  # 5,376 a warp: 12 warps, one block
        (32, 16, 0, "H200", 32, "blocks"),
        (1024, 16, 0, "RTX 4090", 1, "warps"),  # 48 warps an SM, 32 a block
        (256, 16, 40 * 1024, "T4", 1, "shared memory"),
    ],
)
def test_occupancy_by_hand(threads, registers, shared, gpu, blocks, limited_by):
    found = occupancy(threads, registers, shared, gpu)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)
    assert found.warps == blocks * threads // 32
    assert found.fraction == found.warps / GPUS[gpu].max_warps


def test_occupancy_of_a_compiled_kernel_adds_dynamic_shared_memory():
    shared = resources(SOURCE, "shared")
    assert shared.occupancy(128).blocks == 16
    assert shared.occupancy(128, dynamic_shared_bytes=200 * 1024).blocks == 1
    with pytest.raises(ValueError, match="no GPU 'H300' here: one of T4, A100"):
        shared.occupancy(128, gpu="H300")


def test_something_that_is_no_cubin_is_refused():
    with pytest.raises(ValueError, match="not a cubin"):
        kernel_infos(b"//\n// Generated by NVIDIA NVVM Compiler")


@pytest.mark.parametrize("name", shipped_ptx.kernels_to_ship())
def test_no_kernel_of_the_course_spills(name):
    request = shipped_ptx.kernels_to_ship()[name]
    found = all_resources(
        request.source,
        request.options,
        name_expressions=request.name_expressions,
        filename=request.filename,
    )
    assert found
    for kernel in found.values():
        assert kernel.spills is False, kernel


def test_the_command_prints_a_table_or_json(capsys):
    file = str(KERNEL_DIR / "naive_softmax.cu")
    assert main(["resources", file]) == 0
    assert "static shared / block   128 B" in capsys.readouterr().out
    assert main(["resources", file, "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["kernel"] == "naive_softmax"
    assert row["spill_store_bytes"] == 0
    assert main(["resources", "no_such_file.cu"]) == 1
    assert "no_such_file.cu" in capsys.readouterr().err
