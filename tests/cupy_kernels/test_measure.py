import json
import stat
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from cupy_kernels import RawKernel, measure, ncu
from tests.cupy_kernels import fake_cupy

COPY = """extern "C" __global__ void copy(const float* x, float* y, int n, int stride) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = x[i * stride];  // <b>not bold</b> & shown as it is
    }
}
"""

CONFLICTS = """extern "C" __global__ void column(float* x, int pitch) {
    extern __shared__ float tile[];
    tile[threadIdx.x * pitch] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[threadIdx.x * pitch];
}
"""

ADD = """extern "C" __global__ void add(const float* x, float* total) {
    atomicAdd(total, exp2f(x[threadIdx.x]));
}
"""

WARPS = 4


def copy(stride=1, n=32 * WARPS, device="sim"):
    x, y = np.arange(n * stride, dtype=np.float32), np.zeros(n, np.float32)
    RawKernel(COPY, "copy", device=device, filename="copy.cu")(
        (-(-n // 64),), (64,), (x, y, n, stride)
    )
    np.testing.assert_array_equal(y, x[::stride])


# ---- counts in the simulator ----------------------------------------------------------------


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (4, 16), (8, 32), (16, 32)])
def test_sectors_of_a_strided_copy(stride, sectors):
    with measure() as traffic:
        copy(stride)
    arrays = traffic.per_array()
    assert list(arrays) == ["x", "y"], "in the order of the parameters"
    assert arrays["x"].load_sectors == sectors * WARPS
    assert arrays["x"].load_requests == WARPS
    assert arrays["x"].load_bytes == arrays["x"].unique_bytes_read == 128 * WARPS
    assert arrays["y"].store_sectors == 4 * WARPS
    assert (arrays["y"].load_sectors, arrays["x"].store_sectors) == (0, 0)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 100])
def test_a_ragged_end_costs_the_sectors_it_touches(n):
    with measure() as traffic:
        copy(n=n)
    assert traffic.totals.load_sectors == traffic.totals.store_sectors == -(-n // 8)
    assert traffic.totals.load_bytes == 4 * n
    assert traffic.totals.load_requests == -(-n // 32)


@pytest.mark.parametrize(("pitch", "wavefronts"), [(1, 1), (2, 2), (8, 8), (32, 32), (33, 1)])
def test_bank_conflicts_of_a_column(pitch, wavefronts):
    x = np.zeros(32, np.float32)
    with measure() as traffic:
        kernel = RawKernel(CONFLICTS, "column", device="sim")
        kernel((1,), (32,), (x, pitch), shared_mem=4 * 32 * pitch)
    assert traffic.totals.shared_requests == 2
    assert traffic.totals.shared_wavefronts == 2 * wavefronts
    assert traffic.totals.shared_conflicts == 2 * (wavefronts - 1)


def test_atomics_are_kept_apart_and_exponentials_counted():
    x, total = np.zeros(32, np.float32), np.zeros(1, np.float32)
    with measure() as traffic:
        RawKernel(ADD, "add", device="sim")((1,), (32,), (x, total))
    assert total[0] == 32
    assert traffic.totals.atomic_requests == 1
    assert traffic.totals.store_requests == 0
    assert traffic.totals.ex2_lanes == 32
    [kernel] = traffic.kernels
    assert sum(kernel.instruction_mix.values()) == sum(kernel.mix.values())
    assert kernel.instruction_mix["exponential"] == 1
    assert "atomics" in repr(traffic)


def test_counts_are_folded_to_source_lines():
    with measure() as traffic:
        copy(8)
    [kernel] = traffic.kernels
    busy = [line for line in kernel.lines if line.load_requests or line.store_requests]
    assert [line.line for line in busy] == [4]
    assert busy[0].load_sectors == 32 * WARPS
    assert "y[i] = x[i * stride]" in busy[0].text


def test_launches_of_one_kernel_are_summed_and_kernels_kept_apart():
    x, total = np.zeros(32, np.float32), np.zeros(1, np.float32)
    with measure() as traffic:
        copy()
        copy(8)
        RawKernel(ADD, "add", device="sim")((1,), (32,), (x, total))
    assert [(k.kernel, k.launches) for k in traffic.kernels] == [("copy", 2), ("add", 1)]
    assert traffic.kernels[0].arrays["x"].load_sectors == (4 + 32) * WARPS
    assert traffic.kernels[0].lines[-1].load_sectors in (0, (4 + 32) * WARPS)
    assert traffic.per_array()["x"].load_sectors == (4 + 32) * WARPS + 4
    assert traffic.totals.load_sectors == (4 + 32) * WARPS + 4


def test_measurements_nest_and_end():
    with measure() as outer:
        copy()
        with measure() as inner:
            copy()
    copy()
    assert (outer.kernels[0].launches, inner.kernels[0].launches) == (2, 1)
    with measure() as empty:
        pass
    assert repr(empty) == "nothing was launched"
    assert empty.totals.load_bytes is None


def test_an_error_inside_ends_the_measurement():
    with pytest.raises(ZeroDivisionError), measure() as traffic:
        copy()
        _ = 1 / 0
    copy()
    assert traffic.kernels[0].launches == 1


# ---- showing it -----------------------------------------------------------------------------


def test_the_text_shows_each_array_and_says_what_was_not_measured():
    with measure() as traffic:
        copy(8)
    text = repr(traffic)
    assert text.splitlines()[0] == "copy · copy.cu · simulator · 1 launch"
    [row] = [line.split() for line in text.splitlines() if line.strip().startswith("x ")]
    assert row == ["x", "512", "0", "512", "128", "0", "32.00"]
    assert "DRAM:              not measured" in text
    assert "time:              not measured" in text


def test_to_dict_is_json_with_null_for_what_was_not_measured():
    with measure() as traffic:
        copy()
    data = json.loads(traffic.to_json())
    assert data["per_array"]["x"]["load_sectors"] == 4 * WARPS
    assert data["totals"]["dram_read_bytes"] is None
    assert data["kernels"][0]["lines"]
    assert data == json.loads(json.dumps(traffic.to_dict()))


class Balanced(HTMLParser):
    """Collects text and checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_html_shows_the_source_escaped_and_with_heat():
    with measure() as traffic:
        copy(8)
    page = traffic._repr_html_()
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert "script" not in parser.seen
    assert "b" not in {tag for tag in parser.seen if tag == "b"} or "<b>not bold" not in page
    assert "&lt;b&gt;not bold&lt;/b&gt; &amp; shown" in page
    assert "linear-gradient(90deg,rgba(230,159,0" in page
    for line in COPY.splitlines():
        assert line in parser.text
    assert "color:#" not in page.replace("background", ""), "text keeps the theme's own colour"


# ---- a GPU's counters (no GPU: stand-ins for CuPy and ncu) ------------------------------------

RAW_PAGE = """==PROF== Connected to process 4711
==PROF== Profiling "copy" - 0: 0%....50%....100% - 5 passes
==PROF== Disconnected from process 4711
"ID","Process ID","Kernel Name","{load}","{store}","{read}","{time}","{conflicts}"
"","","","sector","sector","byte","ns",""
"0","4711","copy","1,024","16","4096","2,528.00","n/a"
""".format(
    load=ncu.METRICS["load_sectors"],
    store=ncu.METRICS["store_sectors"],
    read=ncu.METRICS["dram_read_bytes"],
    time=ncu.METRICS["time_ns"],
    conflicts=ncu.METRICS["shared_conflicts"],
)


@pytest.fixture
def profiler(tmp_path, monkeypatch, forget_gpu, fresh_cache):
    """Install an "ncu" that answers with a given text, and a GPU that copies."""

    def copy_body(x, y, n, stride):
        y.view(np.float32)[:n] = x.view(np.float32)[::stride]

    def answer(text, error=""):
        script = tmp_path / "ncu"
        script.write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"open({str(tmp_path / 'argv')!r}, 'w').write('\\n'.join(sys.argv))\n"
            f"sys.stdout.write({text!r})\nsys.stderr.write({error!r})\n"
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return tmp_path / "argv"

    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make(copy_body))
    monkeypatch.setenv("PATH", str(tmp_path))
    return answer


def test_a_gpus_counters_fill_the_totals(profiler):
    argv = profiler(RAW_PAGE)
    with measure() as traffic:
        copy(device="gpu")
    assert traffic.totals.load_sectors == 1024
    assert traffic.totals.dram_read_bytes == 4096
    assert traffic.totals.time_ns == 2528
    assert traffic.totals.shared_conflicts is None
    assert traffic.per_array() == {"x": None, "y": None}
    assert traffic.not_measured == ""
    assert "copy · copy.cu · GPU · 1 launch" in repr(traffic)
    assert "per line: not measured" in traffic._repr_html_()
    command = argv.read_text()
    assert ",".join(ncu.METRICS.values()) in command
    assert "--profile-from-start\noff" in command


def test_refused_counters_are_not_measured_and_the_remedy_is_said_once(profiler, capsys):
    profiler("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission")
    for _ in range(2):
        with measure() as traffic:
            copy(device="gpu")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in traffic.not_measured
    assert traffic.totals.load_sectors is None
    assert traffic.kernels[0].launches == 1
    assert "not measured: the driver refuses" in repr(traffic)
    assert capsys.readouterr().err.count("GPU counters not measured") == 1


def test_a_replay_that_fails_says_how_it_ended(profiler):
    profiler("", error="Traceback ...\ncupy.cuda.memory.OutOfMemoryError: no memory\n")
    with measure() as traffic:
        copy(device="gpu")
    assert traffic.not_measured == (
        "ncu measured 0 of 1 launches and ended with: cupy.cuda.memory.OutOfMemoryError: no memory"
    )


def test_without_ncu_the_remedy_is_to_install_it(profiler, monkeypatch, tmp_path):
    monkeypatch.setattr(ncu, "TOOLKIT_PLACES", ())
    with measure() as traffic:
        copy(device="gpu")
    assert traffic.not_measured == ncu.NO_NCU


def test_the_recording_holds_arguments_as_they_were_before_the_launch(profiler, monkeypatch):
    kept = []
    monkeypatch.setattr(ncu, "replay", lambda launches: kept.extend(launches) or [{}])
    with measure():
        copy(device="gpu")
    [launch] = kept
    assert (launch.grid, launch.block) == ((2, 1, 1), (64, 1, 1))
    assert (launch.args[1] == 0).all(), "y before the copy"
    assert launch.args[2:] == (128, 1)


# ---- on a GPU -------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("stride", [1, 2, 8])
def test_the_simulators_sectors_and_requests_are_the_gpus(gpu, stride):
    with measure() as simulated:
        copy(stride, device="sim")
    with measure() as counted:
        copy(stride, device="gpu")
    if counted.not_measured:
        pytest.skip(counted.not_measured)
    for name in ("load_sectors", "store_sectors", "load_requests", "store_requests"):
        assert getattr(counted.totals, name) == getattr(simulated.totals, name), name
