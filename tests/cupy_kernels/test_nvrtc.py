import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cupy_kernels import compile_cache, nvrtc, shipped_ptx
from cupy_kernels.compile_errors import CompileError, NvrtcNotFound
from cupy_kernels.naive_forward import SCORES
from cupy_kernels.nvrtc import Compilation, compile_cubin, compile_ptx
from cupy_kernels.nvrtc_library import NvrtcLibrary

SCALE = """extern "C" __global__ void scale(float* x, float factor) {
    x[threadIdx.x] *= factor;
}
"""

TEMPLATE = """template <typename T, int STEP>
__global__ void fill(T* x, T value) { x[STEP * threadIdx.x] = value; }
"""


def kernel_around(statement):
    return f'extern "C" __global__ void k(float* x, int n) {{\n    {statement}\n}}\n'


# ---- compiling ------------------------------------------------------------------------------


def test_ptx_has_the_kernel_its_target_and_its_lines(fresh_cache):
    ptx = compile_ptx(SCALE)
    assert ".visible .entry scale(" in ptx.text
    assert ".target sm_90a" in ptx.text
    assert re.search(r"\.loc\s+1 2 ", ptx.text), "-lineinfo: the body is on line 2"
    assert ptx.lowered_names == {}


def test_the_architecture_is_the_options_or_the_argument(fresh_cache):
    assert ".target sm_80\n" in compile_ptx(SCALE, arch="sm_80").text
    assert ".target sm_80\n" in compile_ptx(SCALE, options=("-arch=sm_80",)).text
    assert ".target sm_75\n" in compile_ptx(SCALE, options=("--gpu-architecture=sm_75",)).text


def test_name_expressions_compile_template_instances(fresh_cache):
    ptx = compile_ptx(TEMPLATE, name_expressions=("fill<float, 2>", "fill<int, 1>"))
    assert set(ptx.lowered_names) == {"fill<float, 2>", "fill<int, 1>"}
    for mangled in ptx.lowered_names.values():
        assert f".entry {mangled}(" in ptx.text


def test_options_reach_the_compiler(fresh_cache):
    source = kernel_around("((int*)x)[n] = WIDTH;")
    assert "4242" in compile_ptx(source, options=("-DWIDTH=4242",)).text
    with pytest.raises(CompileError, match='"WIDTH" is undefined'):
        compile_ptx(source)


def test_options_given_as_one_string_are_refused():
    with pytest.raises(TypeError, match=r"write options=\('-DX',\)"):
        compile_ptx(SCALE, options="-DX")


@pytest.mark.parametrize(
    "statement",
    [
        "x[n] = INFINITY;",
        "x[n] = NAN;",
        "x[n] = -FLT_MAX;",
        "x[n] = (float)(uint8_t)n + (int64_t)n + (uint16_t)n;",
        "static_assert(sizeof(CUtensorMap) == 128 && alignof(CUtensorMap) == 64);",
    ],
)
def test_the_prelude_supplies_what_nvrtc_lacks(fresh_cache, statement):
    compile_ptx(kernel_around(statement))


@pytest.mark.parametrize("header", ["cstdint", "stdint.h", "cfloat", "cmath", "cuda.h"])
def test_usual_headers_may_be_included(fresh_cache, header):
    compile_ptx(f"#include <{header}>\n" + kernel_around("x[n] = (uint32_t)n * FLT_MAX;"))


@pytest.mark.parametrize("header", ["cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "warp_reduce.cuh"])
def test_cuda_and_course_headers_are_found(fresh_cache, header):
    compile_ptx(f'#include "{header}"\n' + kernel_around("x[n] = 1;"))


def test_ptx_names_no_folder_of_this_machine(fresh_cache):
    source = '#include <cuda_fp16.h>\n#include "warp_reduce.cuh"\n' + kernel_around(
        "x[n] = __half2float(__hmul(__float2half(x[0]), __float2half(x[1]))) + warp_sum(x[2]);"
    )
    files = re.findall(r'\.file\s+\d+\s+"([^"]+)"', compile_ptx(source).text)
    assert {"kernel.cu", "warp_reduce.cuh"} <= set(files)
    assert not [file for file in files if Path(file).is_absolute()]


def test_cubin_is_machine_code_with_ptxas_figures(fresh_cache):
    cubin = compile_cubin(SCALE)
    assert cubin.image.startswith(b"\x7fELF")
    assert re.search(r"Used \d+ registers", cubin.log)


# ---- errors ---------------------------------------------------------------------------------


def test_a_compile_error_shows_the_students_line_and_a_caret():
    source = 'extern "C" __global__ void k(float* x) {\n    x[0] = unknown + 1;\n}\n'
    with pytest.raises(CompileError) as caught:
        compile_ptx(source, filename="mine.cu")
    lines = str(caught.value).splitlines()
    assert lines[0] == "mine.cu does not compile"
    assert lines[1] == 'mine.cu(2): error: identifier "unknown" is undefined'
    assert lines[2].strip() == "x[0] = unknown + 1;"
    assert lines[3].strip() == "^"
    assert lines[3].index("^") == lines[2].index("unknown")
    [diagnostic] = caught.value.diagnostics
    assert (diagnostic.filename, diagnostic.line, diagnostic.severity) == ("mine.cu", 2, "error")


def test_warnings_do_not_hide_the_error():
    source = kernel_around("int unused;\n    x[0] = nothing;")
    with pytest.raises(CompileError) as caught:
        compile_ptx(source)
    assert "unused" not in str(caught.value)
    assert "unused" in caught.value.log
    assert [d.severity for d in caught.value.diagnostics].count("error") == 1


def test_an_error_in_inline_assembly_is_traced_to_its_source_line(fresh_cache):
    source = 'extern "C" __global__ void k(float* x) {\n    float f;\n' + (
        '    asm("bogus.f32 %0;" : "=f"(f));\n    x[0] = f;\n}\n'
    )
    with pytest.raises(CompileError) as caught:
        compile_cubin(source, filename="mine.cu")
    assert "bogus" in str(caught.value)
    assert "→ mine.cu(3): " in str(caught.value)
    assert 'asm("bogus.f32 %0;"' in str(caught.value)


@pytest.mark.parametrize(
    ("include", "remedy"),
    [
        ("<stdio.h>", "delete the line"),
        ("<iostream>", "delete the line"),
        ("<mma.h>", "pip install nvidia-cuda-crt"),
        ("<cuda/std/array>", "pip install nvidia-cuda-cccl"),
        ('"mine.cuh"', "in none of the include folders"),
    ],
)
def test_a_missing_header_comes_with_a_remedy(fresh_cache, include, remedy):
    with pytest.raises(CompileError) as caught:
        compile_ptx(f"#include {include}\n" + kernel_around("x[n] = 0;"))
    assert remedy in str(caught.value).splitlines()[-1]


def test_a_compile_error_survives_the_trip_from_a_child_process():
    with pytest.raises(CompileError) as caught:
        compile_ptx("#include <mma.h>\n")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.diagnostics) == (str(caught.value), caught.value.diagnostics)


def test_a_wrong_architecture_is_the_compilers_own_message():
    with pytest.raises(CompileError, match="invalid value for --gpu-architecture"):
        compile_ptx(SCALE, arch="compute_91")


# ---- the cache ------------------------------------------------------------------------------


def test_the_second_compilation_comes_from_the_cache(fresh_cache, monkeypatch):
    first = compile_ptx(SCALE)

    def refuse(*_):
        raise AssertionError("compiled again")

    monkeypatch.setattr(NvrtcLibrary, "compile", refuse)
    assert compile_ptx(SCALE) == first
    with pytest.raises(AssertionError, match="compiled again"):
        compile_ptx(SCALE, options=("-DOTHER",))


@pytest.mark.parametrize(
    "change",
    [
        {"source": SCALE + "\n"},
        {"options": ("-DX=1",)},
        {"arch": "compute_80"},
        {"filename": "other.cu"},
    ],
)
def test_whatever_changes_the_result_changes_the_entry(fresh_cache, change):
    compile_ptx(SCALE)
    compile_ptx(**{"source": SCALE, **change})
    assert len(list(fresh_cache.rglob("*.json"))) == 2


def test_a_changed_header_is_compiled_anew(fresh_cache, tmp_path):
    source = '#include "outer.cuh"\n' + kernel_around("x[n] = VALUE;")
    options = (f"-I{tmp_path}",)
    (tmp_path / "outer.cuh").write_text('#include "inner.cuh"\n')
    (tmp_path / "inner.cuh").write_text("#define VALUE 1.0f\n")
    before = compile_ptx(source, options=options).text
    (tmp_path / "inner.cuh").write_text("#define VALUE 2.0f\n")
    assert compile_ptx(source, options=options).text != before


def test_an_unreadable_entry_is_compiled_again(fresh_cache):
    first = compile_ptx(SCALE)
    [entry] = fresh_cache.rglob("*.json")
    entry.write_text('{"output": "half an ent')
    assert compile_ptx(SCALE) == first


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert "scale" in compile_ptx(SCALE).text


def test_parallel_writers_leave_one_whole_entry(fresh_cache):
    entry = {"output": "x" * 200_000}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: compile_cache.store("key", entry), range(40)))
        seen = list(pool.map(lambda _: compile_cache.load("key"), range(40)))
    assert all(found == entry for found in seen)
    assert [path.name for path in fresh_cache.rglob("*.*")] == ["key.json"]


def test_the_digest_knows_where_a_part_ends():
    assert compile_cache.digest("ab", "c") != compile_cache.digest("a", "bc")


# ---- without NVRTC --------------------------------------------------------------------------


def test_without_nvrtc_the_error_says_what_to_use_instead(no_nvrtc):
    with pytest.raises(NvrtcNotFound) as caught:
        compile_ptx(SCALE, filename="mine.cu")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("mine.cu cannot be compiled: NVRTC is not installed")
    assert "pip install nvidia-cuda-nvrtc" in message
    with pytest.raises(NvrtcNotFound):
        compile_cubin(SCALE)


@pytest.mark.parametrize("name", shipped_ptx.kernels_to_ship())
def test_without_nvrtc_shipped_ptx_serves_the_courses_kernels(no_nvrtc, name):
    request = shipped_ptx.kernels_to_ship()[name]
    ptx = compile_ptx(
        request.source, options=request.options, name_expressions=request.name_expressions
    )
    assert ".entry" in ptx.text
    assert not ptx.text.startswith("// fingerprint")


def test_shipped_ptx_never_serves_a_changed_source(no_nvrtc):
    with pytest.raises(NvrtcNotFound):
        compile_ptx(SCORES.source + "\n// changed")


def test_shipped_ptx_keeps_the_names_of_template_instances(tmp_path, monkeypatch, fresh_cache):
    monkeypatch.setattr(shipped_ptx, "PTX_DIR", tmp_path / "ptx")
    names = ("fill<float, 2>",)
    request = Compilation.of("compute", TEMPLATE, (), names, "compute_90a", "fill.cu")
    shipped_ptx.write("fill", request)
    made = compile_ptx(TEMPLATE, name_expressions=names, filename="fill.cu")
    found = shipped_ptx.find(request)
    assert (found.text, found.lowered_names) == (made.text, made.lowered_names)


def test_the_shipped_ptx_is_current():
    assert shipped_ptx.stale() == [], "run python -m cupy_kernels.shipped_ptx --rebuild"


@pytest.mark.parametrize("name", shipped_ptx.kernels_to_ship())
def test_the_shipped_ptx_is_what_this_compiler_makes(name, fresh_cache):
    header, text = shipped_ptx._read(shipped_ptx.PTX_DIR / f"{name}.ptx")
    version = nvrtc.find_library().version
    if header["compiler"] != [f"NVRTC {version}, compute_90a"]:
        pytest.skip(f"shipped PTX was made by {header['compiler'][0]}, here is NVRTC {version}")
    request = shipped_ptx.kernels_to_ship()[name]
    made = compile_ptx(
        request.source,
        options=request.options,
        name_expressions=request.name_expressions,
        filename=request.filename,
    )
    assert made.text == text


# ---- the command line -----------------------------------------------------------------------


def test_importing_the_package_loads_no_heavy_library():
    heavy = "('cupy', 'torch', 'matplotlib', 'IPython', 'cupy_kernels.simulator')"
    code = f"import cupy_kernels, sys; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
