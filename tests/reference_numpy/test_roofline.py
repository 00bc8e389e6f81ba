"""The roofline's arithmetic on round numbers, and the order of the devices."""

import pytest

from reference_numpy.roofline import (
    DEVICES,
    Device,
    attainable,
    intensity,
    is_memory_bound,
    least_time,
)

TOY = Device(
    "toy",
    peak_flops=100,
    hbm_bytes_per_s=10,
    hbm_bytes=0,
    sms=2,
    clock_hz=1.0,
    sram_bytes_per_sm=5,
    l2_bytes=0,
)


def test_the_slower_of_arithmetic_and_memory_decides():
    assert TOY.ridge == 10
    assert TOY.sram_bytes == 10
    assert least_time(flops=1000, nbytes=10, device=TOY) == 10
    assert least_time(flops=10, nbytes=1000, device=TOY) == 100
    assert intensity(1000, 10) == 100
    assert attainable(5, TOY) == 50 and attainable(50, TOY) == 100
    assert is_memory_bound(10, 1000, TOY) and not is_memory_bound(1000, 10, TOY)


def test_the_figures_of_the_lesson():
    a100 = DEVICES["A100 80GB"]
    assert a100.sms == 108 and a100.sram_bytes_per_sm == 192 * 1024
    assert a100.ridge == pytest.approx(153, abs=1)
    bandwidths = [device.hbm_bytes_per_s for device in DEVICES.values()]
    assert bandwidths == sorted(bandwidths)
