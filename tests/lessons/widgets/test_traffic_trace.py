"""The replay of a run: every byte of the machine's meter, at every step."""

import json

import numpy as np
import pytest

from lessons.widgets.traffic import MAX_STEPS, TrafficView, together_for, traffic_trace
from reference_numpy.machine import Machine
from tests.lessons.widgets.conftest import run_flash1, run_flash2, run_three_kernels

RUNS = {"three kernels": run_three_kernels, "flash 1": run_flash1, "flash 2": run_flash2}


def shapes(machine):
    return {name: machine.to_host(name).shape for name in machine.traffic.arrays}


@pytest.fixture(params=RUNS)
def machine(request):
    return RUNS[request.param]()


def test_each_step_is_one_transfer_with_the_bytes_so_far(machine):
    trace = traffic_trace(machine.events, shapes(machine))
    transfers = [event for event in machine.events if event.kind != "free"]
    assert len(trace) == len(transfers)
    read, written = (
        dict.fromkeys(machine.traffic.arrays, 0),
        dict.fromkeys(machine.traffic.arrays, 0),
    )
    for event, state in zip(transfers, trace, strict=True):
        (read if event.kind == "load" else written)[event.array] += event.nbytes
        assert (state["read"], state["written"]) == (read, written)
        assert state["total"] == sum(read.values()) + sum(written.values())
        [tile] = state["transfers"]
        assert (tile["kind"], tile["array"], tile["nbytes"]) == (
            event.kind, event.array, event.nbytes,
        )  # fmt: skip
        assert tile["rows"] == list(event.bounds[0])


def test_the_end_is_the_machines_own_meter(machine):
    end = traffic_trace(machine.events, shapes(machine))[-1]
    assert end["read"] == {name: b.read for name, b in machine.traffic.arrays.items()}
    assert end["written"] == {name: b.written for name, b in machine.traffic.arrays.items()}
    assert end["total"] == machine.traffic.total


def test_what_is_on_chip_is_what_the_machine_says(machine):
    trace = traffic_trace(machine.events, shapes(machine))
    settled = []  # SRAM in use just before the next transfer
    for event in machine.events:
        settled = (
            [*settled[:-1], event.sram_bytes]
            if event.kind == "free"
            else [*settled, event.sram_bytes]
        )
    assert [state["sram_bytes"] for state in trace] == settled
    assert all(sum(t["nbytes"] for t in state["live"]) == state["sram_bytes"] for state in trace)
    assert max(settled) <= machine.sram.capacity


@pytest.mark.parametrize("together", [2, 3, 7, 1000])
def test_taking_transfers_together_loses_no_byte(machine, together):
    one = traffic_trace(machine.events, shapes(machine))
    many = traffic_trace(machine.events, shapes(machine), together)
    assert len(many) == -(-len(one) // together)
    for k, state in enumerate(many):
        same = one[min((k + 1) * together, len(one)) - 1]
        for key in ("live", "sram_bytes", "read", "written", "total"):
            assert state[key] == same[key]
    assert sum(len(state["transfers"]) for state in many) == len(one)


def test_a_tile_used_at_once_is_marked_as_let_go():
    machine = Machine(1024)
    X, Y = machine.hbm("X", np.ones(4, np.float32)), machine.empty("Y", (4,))
    kept = X[0:2]
    Y[0:2] = kept + X[2:4]
    states = traffic_trace(machine.events, shapes(machine))
    assert [state["transfers"][0]["alive"] for state in states[:2]] == [True, False]
    assert len(states[1]["live"]) == 1


def test_a_long_run_is_shown_in_few_steps():
    machine = Machine(1024)
    X = machine.hbm("X", np.zeros((1001, 4), np.float32))
    for i in range(1001):
        X[i : i + 1]
    assert together_for(machine.events) == 6
    widget = TrafficView(machine)
    assert len(widget.trace) <= MAX_STEPS
    assert widget.trace[-1]["total"] == 1001 * 16


def test_events_arrays_and_capacity_say_the_same_as_the_machine():
    machine = run_flash2()
    by_parts = TrafficView(machine.events, shapes(machine), machine.sram.capacity)
    assert by_parts.trace == TrafficView(machine).trace
    assert by_parts.runs == TrafficView(machine).runs


def test_two_runs_share_one_pace():
    three, flash = run_three_kernels(), run_flash2()
    widget = TrafficView({"three kernels": three, "FlashAttention-2": flash})
    assert [run["name"] for run in widget.runs] == ["three kernels", "FlashAttention-2"]
    assert widget.trace[-1]["total"] == three.traffic.total
    assert widget.beside[-1]["total"] == flash.traffic.total
    widget.step = 10**6
    assert widget.step == max(len(widget.trace), len(widget.beside)) - 1
    json.dumps(widget.get_state(), allow_nan=False)


def test_the_text_for_places_without_a_front_end():
    machine = run_flash1()
    text = TrafficView(machine)._repr_mimebundle_()[0]["text/plain"]
    assert "first: load K[0:16], 256 bytes; SRAM 512 of 8,192" in text
    assert f"total  {machine.traffic.total:,} bytes" in text


def test_bad_input_gets_one_clear_line():
    machine = run_flash1()
    with pytest.raises(ValueError, match="no transfers"):
        TrafficView(Machine())
    with pytest.raises(ValueError, match="3 runs"):
        TrafficView({"a": machine, "b": machine, "c": machine})
    with pytest.raises(ValueError, match="give arrays and sram_bytes"):
        TrafficView(machine.events)
    with pytest.raises(ValueError, match="touches K, but arrays lists Q"):
        TrafficView(machine.events, {"Q": (48, 8)}, 1024)
    with pytest.raises(ValueError, match=r"X has shape \(2, 2, 2\)"):
        TrafficView(machine.events, {"X": (2, 2, 2)}, 1024)
