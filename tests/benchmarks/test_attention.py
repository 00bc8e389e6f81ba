"""The bookkeeping of the attention suites; the measuring itself needs a GPU and torch."""

import importlib.util

import pytest

from benchmarks import __main__ as command
from benchmarks import attention, results_file


def case(d=64, N=4096, causal=False):
    """A case without its tensors."""
    bare = object.__new__(attention.Case)
    bare.d, bare.N, bare.causal, bare.dtype = d, N, causal, "bfloat16"
    bare.shape = (attention.TOKENS // N, attention.HIDDEN // d, N, d)
    return bare


@pytest.mark.parametrize("d", attention.HEAD_DIMS)
def test_flops_are_counted_as_in_the_papers(d):
    full = case(d, 8192)
    assert full.flops("forward") == 4 * 8192**2 * attention.HIDDEN * 2
    assert case(d, 8192, causal=True).flops("forward") == full.flops("forward") / 2
    assert full.flops("backward") == 2.5 * full.flops("forward")


def test_speed_is_flops_over_time():
    rates = case().rates("forward", {"ours": [2.0]})
    assert rates["ours"] == [case().flops("forward") / 2e-3 / 1e12]


def test_a_row_sets_the_medians_side_by_side():
    rates = {"flash2": [10.0, 30.0, 20.0], "torch FLASH": [10.0, 10.0, 50.0], "other": [40.0]}
    flash, other = attention._rows("forward", "flash2_forward", case(causal=True), rates)
    assert (flash["value"], flash["peer_value"], flash["ratio"]) == (20.0, 10.0, 2.0)
    assert (other["peer"], other["ratio"], other["spread"]) == ("other", 0.5, 10.0)
    assert (flash["d"], flash["N"], flash["causal"]) == (64, 4096, True)


@pytest.mark.parametrize("suite", ["forward", "backward", "ladder"])
def test_without_a_gpu_the_suite_says_so(suite, monkeypatch):
    monkeypatch.setattr("cupy_kernels.device.gpu_capability", lambda: None)
    with pytest.raises(SystemExit, match="the attention suites need a GPU"):
        command.SUITES[suite]()


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_suite_says_so(monkeypatch):
    monkeypatch.setattr("cupy_kernels.device.gpu_capability", lambda: (9, 0))
    with pytest.raises(SystemExit, match="pip install torch"):
        attention.run_forward()


@pytest.mark.parametrize("suite", ["forward", "backward"])
def test_recorded_speeds_reach_flash_attention_2(suite):
    """The bars of the course, in every recorded cell of N ≥ 4096: forward 1.0, backward 0.9."""
    record = results_file.newest(suite)
    cells = [r for r in record["rows"] if r["peer"] == "torch FLASH" and r["N"] >= 4096]
    assert {(r["d"], r["N"], r["causal"]) for r in cells} == {
        (d, N, causal) for d in (64, 128) for N in (4096, 16384) for causal in (False, True)
    }
    bar = {"forward": 1.0, "backward": 0.9}[suite]
    assert all(r["ratio"] >= bar for r in cells)
    assert all(r["ratio"] == pytest.approx(r["value"] / r["peer_value"], abs=0.01) for r in cells)
