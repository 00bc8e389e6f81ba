"""The crosscheck's own logic, without a GPU: what counts as equal, and what one failure does."""

import json

import numpy as np
import pytest

from benchmarks import __main__, crosscheck, hardware_counters, results_file
from benchmarks.crosscheck import Outcome
from tests.cupy_kernels.sampler import SAMPLER

RAW_PAGE = """==PROF== Connected to process 12
thread 0 of warp:  2.50%
"ID","Process ID","Kernel Name","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","x__y.sum"
"","","","sector","inst"
"0","12","coalesced_copy","1,024","n/a"
"1","12","void row_sums<float, 6>(const T1 *, T1 *)","64","2"
"""


def test_rows_of_the_raw_page():
    rows = hardware_counters.rows_of(RAW_PAGE)
    assert rows[0]["kernel"] == "coalesced_copy"
    assert rows[0]["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 1024
    assert rows[0]["x__y.sum"] is None and rows[1]["x__y.sum"] == 2
    assert crosscheck._is_named(rows[1]["kernel"], "row_sums<float, 6>")
    assert hardware_counters.rows_of("==ERROR== nothing") == []


def _agreeing(name):
    """An outcome in which simulator, GPU and counters all agree with the truth."""
    arguments, expected = SAMPLER[name].arguments()
    for output, value in expected.items():
        got = arguments[output]
        arguments[output] = np.asarray(value).astype(got.dtype).reshape(got.shape)
    counts = dict.fromkeys(hardware_counters.COUNTERPARTS, 0)
    counts |= SAMPLER[name].counts
    hardware = {}
    for count, counters in hardware_counters.COUNTERPARTS.items():
        hardware |= dict.fromkeys(counters, 0) | {counters[0]: counts[count]}
    gpu = {k: v.copy() for k, v in arguments.items() if isinstance(v, np.ndarray)}
    return Outcome(name, arguments, counts, gpu, hardware)


def test_agreement_is_no_trouble():
    outcome = _agreeing("coalesced_copy")
    crosscheck._compare(outcome)
    assert outcome.trouble == []
    rows = list(crosscheck._rows(outcome))
    assert all(row["ratio"] in (None, 1.0) for row in rows)
    assert {"load_sectors", "store_requests", "outputs agree"} <= {row["metric"] for row in rows}


def test_one_sector_more_is_trouble():
    outcome = _agreeing("coalesced_copy")
    outcome.hardware["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] += 1
    crosscheck._compare(outcome)
    assert outcome.trouble == ["load_sectors: simulator 128, ncu 129"]


def test_a_wrong_bit_on_the_gpu_is_trouble():
    outcome = _agreeing("integer_alu")
    outcome.on_gpu["wide"].flat[3] ^= 1
    crosscheck._compare(outcome)
    assert len(outcome.trouble) == 2
    assert all("wide" in line for line in outcome.trouble)


def test_sectors_of_async_copies_are_counted_apart():
    outcome = _agreeing("async_copy_bypass")
    ours = outcome.counts["cp_async_moves"] = 512
    outcome.hardware[hardware_counters.COUNTERPARTS["cp_async_moves"][0]] = ours
    outcome.hardware[hardware_counters.PLAIN_LOADS[0]] = 3
    outcome.hardware["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] = 600
    outcome.hardware["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] = 31
    outcome.hardware[hardware_counters.COUNTERPARTS["cp_async_moves"][0]] += 1
    crosscheck._compare(outcome)
    assert outcome.trouble == [
        "load_sectors: simulator 0, ncu 3",
        "load_requests: simulator 0, ncu 31",
        f"cp_async_moves: simulator {ours}, ncu {ours + 1}",
    ]


def test_a_listed_exception_is_no_trouble_but_is_recorded():
    outcome = _agreeing("mma_e4m3")
    outcome.counts["mma"], (counter,) = 16, hardware_counters.COUNTERPARTS["mma"]
    outcome.hardware[counter] = 32
    crosscheck._compare(outcome)
    assert outcome.trouble == []
    summary = crosscheck._summary({"mma_e4m3": outcome})
    assert summary["counters equal"]["mma"] == "0 of 1"
    assert list(summary["exceptions"]["mma_e4m3"]) == ["mma"]


def test_a_kernel_that_could_not_be_simulated_has_no_counters_to_compare():
    outcome = _agreeing("saturating_convert")
    outcome.counts = {}
    assert [row["metric"] for row in crosscheck._rows(outcome)] == ["outputs agree"]


def test_a_kernel_that_ends_the_process_does_not_stop_the_rest(tmp_path, monkeypatch):
    outcomes = {name: Outcome(name) for name in ("shifts", "votes", "gone", "if_else")}

    def child(names, folder):
        done = names[: names.index("gone")] if "gone" in names else names
        for name in done:
            np.savez(folder / f"{name}.npz", out=np.zeros(1))
        return done, "illegal address"

    monkeypatch.setattr(crosscheck, "_child", child)
    crosscheck._run_on_gpu(outcomes, tmp_path)
    assert [name for name, o in outcomes.items() if o.on_gpu is None] == ["gone"]
    assert outcomes["gone"].trouble == ["GPU: illegal address"]


def test_without_a_gpu_one_clear_line(monkeypatch, capsys):
    monkeypatch.setattr(crosscheck.device, "gpu_capability", lambda: None)
    monkeypatch.setattr(crosscheck.device, "no_gpu_reason", lambda: "no driver")
    assert __main__.main(["crosscheck"]) == 2
    assert capsys.readouterr().err == "crosscheck needs a GPU: no driver\n"
    assert __main__.main(["crosscheck", "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_recorded_results(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(results_file, "RESULTS", tmp_path)
    path = results_file.write("a", [results_file.row("simulator", "vadd", "time", 1.5, "s", N=64)])
    record = json.loads(path.read_text())
    assert set(record) >= {"date", "gpu", "driver", "versions", "command", "rows"}
    assert set(record["rows"][0]) == set(results_file.COLUMNS)
    assert results_file.newest("simulator") == record
    assert results_file.newest("forward") is None
    assert __main__.main(["table"]) == 0
    assert "vadd" in capsys.readouterr().out
    with pytest.raises(TypeError, match="colour"):
        results_file.row("simulator", "vadd", "time", 1, "s", colour="red")
