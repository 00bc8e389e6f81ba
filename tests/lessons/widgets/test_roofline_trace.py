"""The roofline's figures, against the two limits worked out apart."""

import numpy as np
import pytest

from lessons.widgets.roofline import Roofline, roofline_trace
from reference_numpy.roofline import DEVICES, attainable, is_memory_bound, least_time
from tests.lessons.widgets.conftest import KERNELS, RATES


def test_every_kernel_on_every_device():
    for point, (name, flops, nbytes) in zip(roofline_trace(RATES, KERNELS), KERNELS, strict=True):
        assert (point["name"], point["intensity"]) == (name, flops / nbytes)
        for device, (peak, bandwidth) in RATES.items():
            on = point["on"][device]
            roof = np.minimum(peak, flops / nbytes * bandwidth)
            np.testing.assert_allclose(on["attainable"], roof, rtol=1e-12)
            np.testing.assert_allclose(on["seconds"], flops / roof, rtol=1e-12)
            np.testing.assert_allclose(on["share"], roof / peak, rtol=1e-12)


def test_agrees_with_the_lessons_own_roofline():
    for point, (_, flops, nbytes) in zip(roofline_trace(RATES, KERNELS), KERNELS, strict=True):
        for name, device in DEVICES.items():
            on = point["on"][name]
            assert on["attainable"] == pytest.approx(attainable(flops / nbytes, device))
            assert on["seconds"] == pytest.approx(least_time(flops, nbytes, device))
            assert (on["bound"] == "memory") == is_memory_bound(flops, nbytes, device)


def test_on_the_ridge_arithmetic_is_the_limit():
    [point] = roofline_trace({"X": (100.0, 10.0)}, [("ridge", 10.0, 1.0)])
    assert point["on"]["X"]["bound"] == "compute"
    assert point["on"]["X"]["share"] == 1


@pytest.mark.parametrize(
    ("devices", "points", "message"),
    [
        ({}, [("a", 1, 1)], "0 devices and 1 kernels"),
        ({"X": (1, 1)}, [], "1 devices and 0 kernels"),
        ({"X": (0, 1)}, [("a", 1, 1)], "device X: peak = 0"),
        ({"X": (1, 1)}, [("copy", 0, 8)], "kernel copy: FLOPs = 0"),
        ({"X": (1, 1)}, [("a", 1, float("inf"))], "kernel a: bytes = inf"),
    ],
)
def test_bad_input_gets_one_clear_line(devices, points, message):
    with pytest.raises(ValueError, match=message):
        Roofline(devices, points)


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="device 'Z': choose from X"):
        Roofline({"X": (1, 1)}, [("a", 1, 1)], device="Z")


def test_the_text_for_places_without_a_front_end():
    widget = Roofline({"A100": (312e12, 2e12)}, [("add", 1e6, 12e6)])
    text = widget._repr_mimebundle_()[0]["text/plain"]
    assert "peak 312 TFLOP/s, HBM 2.00 TB/s, ridge at 156.0" in text
    assert "add" in text and "memory" in text and "6 µs" in text
