"""Arguments, aliasing, configuration, counters as a whole, and the full-width comparison."""

import numpy as np
import pytest

from cupy_kernels.nvrtc import compile_ptx
from cupy_kernels.simulator import Fault, LaunchError, launch, load

SOURCE = """extern "C" __global__ void tile_sum(const float* a, float* out, int n, float scale) {
    __shared__ float tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x] = i < n ? a[i] : 0.f;
    __syncthreads();
    float sum = 0.f;
    for (int k = 0; k < 4; ++k) sum += tile[(threadIdx.x * 4 + k) % 128];
    if (i < n) out[i] = sum * scale;
}"""


def a_kernel(source=SOURCE, name="tile_sum"):
    return load(compile_ptx(source, filename="t.cu").text, source, "t.cu").kernels[name]


def arguments(n=300):
    a = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    return [a, np.zeros(n, np.float32), np.int32(n), np.float32(0.5)]


def truth(a):
    padded = np.zeros(-(-len(a) // 128) * 128, np.float32)
    padded[: len(a)] = a
    tiles = padded.reshape(-1, 128)
    picked = tiles[:, (np.arange(128)[:, None] * 4 + np.arange(4)) % 128]
    return picked.astype("f8").sum(-1).ravel()[: len(a)] * 0.5


def test_values_and_counts():
    args = arguments()
    counts = launch(a_kernel(), (3,), (128,), args)
    assert np.abs(args[1] - truth(args[0])).max() < 1e-6
    a, out = counts.per_array()["a"], counts.per_array()["out"]
    assert (a.load_bytes, a.load_requests, a.load_sectors) == (1200, 10, 38)
    assert (out.store_bytes, out.store_requests, out.store_sectors) == (1200, 10, 38)
    assert (a.unique_bytes_read, out.unique_bytes_written) == (1200, 1200)
    totals = counts.totals
    assert (totals.load_bytes, totals.store_bytes) == (1200, 1200)
    assert totals.shared_requests == 12 + 4 * 10
    # Every fourth word: a full warp has four-way conflicts, the last one's 12 lanes two-way ones.
    assert totals.shared_wavefronts == 12 + 4 * (9 * 4 + 2)
    lines = {line.line: line for line in counts.per_line()}
    assert lines[4].load_bytes == 1200 and lines[8].store_bytes == 1200
    assert lines[7].shared_conflicts == 4 * (9 * 3 + 1)
    assert sum(line.executed for line in lines.values()) == sum(counts.mix.values())


def test_full_width_gives_the_same():
    plain, full = arguments(), arguments()
    one = launch(a_kernel(), (3,), (128,), plain)
    two = launch(a_kernel(), (3,), (128,), full, full_classes=True)
    assert (plain[1] == full[1]).all()
    assert one.per_array() == two.per_array()
    for x, y in zip(one.per_instruction, two.per_instruction, strict=True):
        if x.instruction.root != "ret":
            assert x.as_dict() == y.as_dict(), x.instruction.text


def test_equal_texts_share_their_translation_but_not_their_variables():
    source = 'extern "C" { __device__ int n; __global__ void k() { n += 1; } }'
    text = compile_ptx(source, filename="n.cu").text
    first, second = load(text, source), load(text, source)
    assert first.kernels["k"].translation is second.kernels["k"].translation
    for _ in range(3):
        launch(first.kernels["k"], (1,), (1,), [])
    assert first.variables["n"].view("i4")[0] == 3
    assert second.variables["n"].view("i4")[0] == 0


def test_overlapping_arguments_are_one_buffer():
    source = """extern "C" __global__ void shift(const float* a, float* b) {
        b[blockIdx.x] = a[blockIdx.x]; }"""
    a = np.arange(9, dtype=np.float32)
    with pytest.raises(Fault, match="two blocks touch"):
        launch(a_kernel(source, "shift"), (8,), (1,), [a, a[1:]])


def test_a_view_keeps_its_misalignment():
    source = """extern "C" __global__ void k(const float4* a, float4* b) {
        b[threadIdx.x] = a[threadIdx.x]; }"""
    a, b = np.zeros(68, np.float32), np.zeros(64, np.float32)
    launch(a_kernel(source, "k"), (1,), (16,), [a[4:], b])
    with pytest.raises(Fault, match="not aligned") as caught:
        launch(a_kernel(source, "k"), (1,), (16,), [a[1:], b])
    assert caught.value.kind == "misaligned" and caught.value.array == "a"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda a: a[:3], "takes 4 arguments"),
        (lambda a: [a[0][::2], *a[1:]], "C-contiguous"),
        (lambda a: [*a[:2], np.int64(3), a[3]], "n has 8 bytes"),
        (lambda a: [*a[:2], "three", a[3]], "str"),
    ],
)
def test_bad_arguments(change, named):
    with pytest.raises(LaunchError, match=named):
        launch(a_kernel(), (3,), (128,), change(arguments()))


@pytest.mark.parametrize(("grid", "block"), [((0,), (128,)), ((1,), ()), ((1, 1, 1, 1), (1,))])
def test_bad_shapes(grid, block):
    with pytest.raises(LaunchError, match="positive"):
        launch(a_kernel(), grid, block, arguments())


def test_python_scalars_fit_their_parameters():
    args = arguments()
    launch(a_kernel(), 3, 128, [*args[:2], 300, 0.5])
    assert np.abs(args[1] - truth(args[0])).max() < 1e-6


def test_a_fault_survives_pickling():
    import pickle

    args = arguments()
    with pytest.raises(Fault) as caught:
        launch(a_kernel(), (3,), (128,), [*args[:2], np.int32(350), args[3]])
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.array, again.element, again.place.line) == ("a", 300, 4)
