"""Every bug of the catalogue is caught, and the report names kind, kernel, line, thread, array."""

import pytest

from cupy_kernels.nvrtc import compile_ptx
from cupy_kernels.simulator import Fault, Limits, PtxError, load

from .catalogue import CATALOGUE, PLANTED, Bug, Launch, _in_out
from .correct import LAUNCHES, source


def caught(bug: Bug, **options) -> Fault:
    filename = f"{bug.kernel}.cu"
    with pytest.raises(Fault) as raised:
        bug.fresh_launch().run(bug.source, filename, bug.kernel, **options)
    return raised.value


def line_text(bug: Bug, number: int) -> str:
    return bug.source.splitlines()[number - 1]


@pytest.mark.parametrize("name", CATALOGUE)
def test_is_caught(name):
    bug = CATALOGUE[name]
    fault = caught(bug)
    report = str(fault)
    assert fault.kind == bug.kind, report
    assert fault.kernel == bug.kernel
    assert bug.at in line_text(bug, fault.place.line), report
    assert f"{bug.kernel}.cu:{fault.place.line}" in report
    if bug.called:
        assert any(bug.called in line_text(bug, n) for n in fault.place.call_lines), report
    if bug.array:
        assert fault.array in ([bug.array] if isinstance(bug.array, str) else bug.array), report
        assert fault.array in report
    if bug.offset is not None:
        assert fault.byte_offset == bug.offset, report
    assert fault.block is not None, report
    if bug.block is not None:
        assert fault.block == bug.block, report
    if bug.threads is not None:
        assert fault.thread[0] in bug.threads, report
        assert fault.thread[1:] == (0, 0)
    if bug.others is not None:
        assert fault.other_lanes == bug.others, report
    if bug.other:
        other = fault.parties[0]
        assert bug.other in line_text(bug, other.place.line), report
        assert other.thread is not None, report
        assert other.thread != fault.thread or bug.kind != "race", report
    assert [word for word in bug.says if word not in report] == [], report


def test_every_planted_kernel_is_used():
    elsewhere = {"endless_loop", "launch_bounds", "two_barrier_lines", "copy_in_flight_at_exit"}
    used = {bug.kernel for bug in CATALOGUE.values()}
    assert {path.stem for path in PLANTED.glob("*.cu")} - used == elsewhere


def run_planted(name, launch, **options):
    text = (PLANTED / f"{name}.cu").read_text()
    return text, launch.run(text, f"{name}.cu", name, **options)


def test_race_between_blocks_names_both_blocks():
    fault = caught(CATALOGUE["a block reads what another writes"])
    blocks = {fault.block, *(party.block for party in fault.parties)}
    assert len(blocks - {None}) == 2, str(fault)


def test_divergent_barrier_counts_the_threads():
    """How many wait at which line, and where the others are."""
    bug = CATALOGUE["a barrier for half of a 2-D block"]
    assert "128" in str(caught(bug))


def test_deadlock_names_every_barrier_that_is_waited_at():
    bug = CATALOGUE["two warps that wait for each other"]
    report = str(caught(bug))
    guilty = [n for n, text in enumerate(bug.source.splitlines(), 1) if "// " in text]
    assert all(f":{n}" in report or f"line {n}" in report for n in guilty), report


@pytest.mark.parametrize("limit", [Limits(steps=2000), Limits(steps=10**9, seconds=0.5)])
def test_endless_loop_ends(limit):
    arguments = _in_out(32) | {"a": _in_out(32)["a"] * 0}
    with pytest.raises(Fault) as raised:
        run_planted("endless_loop", Launch((1,), (32,), arguments, {}), limits=limit)
    fault = raised.value
    assert fault.kind == ("step limit" if limit.steps == 2000 else "time limit")
    text = (PLANTED / "endless_loop.cu").read_text().splitlines()
    assert any(word in text[fault.place.line - 1] for word in ("while (flag", "++turns")), str(
        fault
    )


def test_more_threads_than_launch_bounds():
    launch = Launch((1,), (96,), {"out": _in_out(96)["out"]}, {})
    with pytest.raises(Fault, match=r"(?s)launch_bounds.*96.*64") as raised:
        run_planted("launch_bounds", launch)
    assert raised.value.kind == "launch"


def test_more_than_48_kilobytes_need_an_opt_in():
    launch = Launch((1,), (64,), _in_out(64, dtype="f4"), {}, shared_bytes=50_000)
    with pytest.raises(Fault, match="max_dynamic_shared_size_bytes = 50000") as raised:
        run_planted("too_little_dynamic_shared", launch)
    assert raised.value.kind == "launch"
    run_planted("too_little_dynamic_shared", launch, max_dynamic_shared_bytes=50_000)


def test_two_lines_of_one_barrier_are_a_warning():
    text, counts = run_planted("two_barrier_lines", Launch((1,), (64,), _in_out(64), {}))
    guilty = [str(n) for n, line in enumerate(text.splitlines(), 1) if "// " in line]
    assert any(all(n in warning for n in guilty) for warning in counts.warnings), counts.warnings


def test_copy_in_flight_at_exit_is_a_warning():
    text, counts = run_planted("copy_in_flight_at_exit", Launch((1,), (32,), _in_out(32), {}))
    guilty = next(str(n) for n, line in enumerate(text.splitlines(), 1) if "// BUG" in line)
    assert any("in flight" in w and guilty in w for w in counts.warnings), counts.warnings


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("add.f32", "frobnicate.f32", "frobnicate"),
        ("add.f32", "add.sideways.f32", "sideways"),
        ("st.global.f32", "st.global.lukewarm.f32", "lukewarm"),
    ],
)
def test_unknown_opcode_or_modifier_is_refused(old, new, named):
    """Before anything runs, with the instruction and the source line."""
    text = source("vadd")
    ptx = compile_ptx(text, filename="vadd.cu").text
    assert old in ptx
    with pytest.raises(PtxError) as raised:
        load(ptx.replace(old, new), text, "vadd.cu").kernels["vadd"].compile()
    guilty = next(n for n, line in enumerate(text.splitlines(), 1) if "a[i] + b[i]" in line)
    assert named in str(raised.value) and str(guilty) in str(raised.value), str(raised.value)


SIZES = {
    "vadd": [{"n": 1}, {"n": 1000}],
    "softmax_rows": [{"N": 100}, {"N": 130}, {"N": 512}],
    "gemm": [{"N": 16}, {"N": 64}],
    "flash1": [{"N": 32}, {"N": 100}, {"N": 130, "heads": 2}],
    "flash2": [{"N": 64}, {"N": 100, "heads": 2}, {"N": 130}, {"N": 256}],
    "stencil": [{"tiles": 1}, {"tiles": 5}],
    "block_sums": [{"n": 64}, {"n": 3001}],
    "early_return": [{"n": 1}, {"n": 32}, {"n": 96}],
}


@pytest.mark.parametrize(
    ("kernel", "size"), [(k, size) for k, sizes in SIZES.items() for size in sizes], ids=str
)
def test_no_report_on_correct_kernels(kernel, size):
    launch = LAUNCHES[kernel](**size)
    counts = launch.run(source(kernel), f"{kernel}.cu", kernel)
    assert launch.wrong() == []
    assert counts.warnings == []
