"""The model machine: what crosses is counted, what is on chip is held to its size."""

import ml_dtypes
import numpy as np
import pytest

from reference_numpy.machine import InHbm, Machine, SramOverflow


def machine_with(name="Q", shape=(100, 64), dtype=np.float32, sram_bytes=192 * 1024):
    machine = Machine(sram_bytes)
    values = np.arange(np.prod(shape), dtype=np.float64).reshape(shape) / 100
    return machine, machine.hbm(name, values.astype(dtype))


@pytest.mark.parametrize(
    ("dtype", "width"), [(np.float32, 4), (np.float16, 2), (ml_dtypes.bfloat16, 2), (np.float64, 8)]
)
def test_a_tile_is_metered_at_the_width_of_hbm_and_arrives_as_fp32(dtype, width):
    machine, Q = machine_with(dtype=dtype)
    tile = Q[10:42]
    assert tile.dtype == np.float32
    assert machine.traffic["Q"].read == 32 * 64 * width
    np.testing.assert_array_equal(tile, machine.to_host("Q")[10:42].astype(np.float32))


def test_a_store_is_cast_and_metered():
    machine, O = machine_with("O", dtype=np.float16)
    O[0:10] = np.full((10, 64), 1 / 3, np.float32)
    assert machine.traffic["O"].written == 10 * 64 * 2
    assert machine.to_host("O")[0, 0] == np.float16(1 / 3)


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        (slice(90, 120), (10, 64)),
        (slice(200, 300), (0, 64)),
        (3, (64,)),
        (-1, (64,)),
        ((slice(0, 4), slice(8, 16)), (4, 8)),
        (..., (100, 64)),
        ((..., slice(0, 2)), (100, 2)),
        ((5, 6), ()),
    ],
)
def test_regions_have_the_shape_numpy_gives_them(key, shape):
    machine, Q = machine_with()
    tile = Q[key]
    assert tile.shape == shape
    assert machine.traffic["Q"].read == 4 * int(np.prod(shape))
    np.testing.assert_array_equal(tile, machine.to_host("Q")[key])


def test_read_modify_write_pays_both_ways():
    machine, O = machine_with("O")
    before = machine.to_host("O")
    O[0:10] += 1
    assert (machine.traffic["O"].read, machine.traffic["O"].written) == (2560, 2560)
    np.testing.assert_array_equal(machine.to_host("O")[:10], before[:10] + 1)


@pytest.mark.parametrize(
    "operation",
    [
        lambda Q, q: Q @ q.T,
        lambda Q, q: q @ Q,
        lambda Q, q: Q + 1,
        lambda Q, q: 2 * Q,
        lambda Q, q: np.exp(Q),
        lambda Q, q: np.sum(Q),
        lambda Q, q: np.asarray(Q),
        lambda Q, q: Q.T,
        lambda Q, q: list(Q),
        lambda Q, q: q == Q,
        lambda Q, q: bool(Q),
    ],
)
def test_hbm_computes_nothing_and_says_what_to_do(operation):
    machine, Q = machine_with()
    tile = Q[0:4]
    with pytest.raises(InHbm, match=r"Q lives in HBM.*tile = Q\[i:j\]"):
        operation(Q, tile)
    assert machine.traffic["Q"].read == tile.nbytes


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (slice(0, 10, 2), "step 1"),
        (1.5, "whole numbers"),
        (100, "100 entries"),
        ((0, 0, 0), "too many"),
        (True, "whole numbers"),
        (np.array([1, 2]), "whole numbers"),
    ],
)
def test_an_index_that_is_no_tile_is_refused(key, message):
    _, Q = machine_with()
    with pytest.raises(IndexError, match=message):
        Q[key]


def test_a_tile_of_the_wrong_shape_is_refused():
    machine, O = machine_with("O")
    with pytest.raises(ValueError, match=r"O\[0:4, 0:64\] takes a tile of shape \(4, 64\)"):
        O[0:4] = np.zeros((5, 64))
    assert machine.traffic["O"].written == 0


def test_live_tiles_overflow_sram_and_are_named():
    _, Q = machine_with(sram_bytes=2 * 32 * 64 * 4)
    kept = [Q[0:32], Q[32:64], Q[64:96]]
    with pytest.raises(SramOverflow, match=r"Q\[0:32, 0:64\], Q\[32:64, 0:64\], Q\[64:96"):
        Q[96:97]
    assert len(kept) == 3


def test_a_tile_larger_than_sram_is_refused_at_once():
    _, Q = machine_with(sram_bytes=1000)
    with pytest.raises(SramOverflow, match="25,600 bytes; SRAM holds 1,000"):
        Q[:]


def test_rebinding_a_name_frees_the_old_tile_in_time():
    machine, Q = machine_with(sram_bytes=32 * 64 * 4)
    for i in range(0, 96, 32):
        tile = Q[i : i + 32]
    assert tile.shape == (32, 64)
    assert machine.sram.used == 32 * 64 * 4


def test_a_view_keeps_its_tile_on_chip():
    machine, Q = machine_with()
    view = Q[0:32].T
    assert machine.sram.used == 32 * 64 * 4
    del view
    assert machine.sram.used == 0


def test_computed_arrays_do_not_count_against_sram():
    machine, Q = machine_with()
    computed = Q[0:32] * 2
    assert computed.nbytes == 32 * 64 * 4
    assert machine.sram.used == 0


def test_results_hold_nan_until_they_are_stored():
    machine = Machine()
    O = machine.empty("O", (4, 2), np.float16)
    O[0:2] = 0
    np.testing.assert_array_equal(np.isnan(machine.to_host("O")[:, 0]), [False, False, True, True])


def test_hbm_keeps_its_own_copy():
    machine, values = Machine(), np.ones((4, 2), np.float32)
    Q = machine.hbm("Q", values)
    Q[0:1] = 7
    assert values[0, 0] == 1
    machine.to_host("Q")[:] = 9
    assert Q[0, 0] == 7


def test_names_are_unique_floating_and_sealed_while_a_kernel_runs():
    machine, _ = machine_with()
    with pytest.raises(ValueError, match="already holds an array called 'Q'"):
        machine.empty("Q", (1,))
    with pytest.raises(TypeError, match="floating point"):
        machine.hbm("mask", np.ones(3, bool))
    machine.seal()
    with pytest.raises(InHbm, match="cannot reserve HBM"):
        machine.empty("S", (10, 10))


def test_fits_leaves_half_of_sram_for_tiles():
    machine, Q = machine_with(shape=(64, 16), sram_bytes=2 * 64 * 16 * 4)
    assert machine.fits(Q)
    smaller, Q = machine_with(shape=(64, 16), sram_bytes=2 * 64 * 16 * 4 - 1)
    assert not smaller.fits(Q)


def test_events_tell_the_run_in_order():
    machine, Q = machine_with()
    O = machine.empty("O", (100, 64))
    O[0:10] = Q[0:10] * 2
    kinds = [(event.kind, event.array, event.bounds[0], event.nbytes) for event in machine.events]
    assert kinds == [
        ("load", "Q", (0, 10), 2560),
        ("free", "Q", (0, 10), 0),
        ("store", "O", (0, 10), 2560),
    ]
    assert [event.sram_bytes for event in machine.events] == [2560, 0, 0]


def test_the_traffic_table_reads_in_text_and_html():
    machine, Q = machine_with()
    Q[0:10]
    assert "Q " in repr(machine.traffic) and "2,560" in repr(machine.traffic)
    assert "<td style='text-align:right'>2,560</td>" in machine.traffic._repr_html_()
