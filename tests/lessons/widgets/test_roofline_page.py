"""The roofline in a browser: each kernel on each device, by key, by mouse and as a table."""

import pytest

from lessons.widgets.roofline import Roofline
from tests.lessons.widgets.conftest import KERNELS, RATES

pytestmark = pytest.mark.browser

SIZES = {
    "p": 1e-12,
    "n": 1e-9,
    "µ": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
}


def value(text: str) -> float:
    """“312 TFLOP/s” -> 312e12."""
    number, unit = text.replace("−", "-").split(" ")
    return float(number) * (SIZES[unit[0]] if unit[0] in SIZES and unit != "s" else 1)


@pytest.mark.parametrize("device", RATES)
def test_every_kernel_on_every_device(show, device):
    widget = Roofline(RATES, KERNELS)
    shown = show(widget)
    shown.page.get_by_label("Device").select_option(device)
    peak, bandwidth = RATES[device]
    for k, point in enumerate(widget.trace):
        shown.go(k)
        got, on = shown.numbers, point["on"][device]
        assert got["name"] == point["name"]
        assert float(got["intensity"]) == pytest.approx(point["intensity"], rel=6e-3)
        assert value(got["attainable"]) == pytest.approx(on["attainable"], rel=6e-3)
        assert value(got["seconds"]) == pytest.approx(on["seconds"], rel=6e-3)
        assert got["bound"] == f"{on['bound']}-bound"
        ridge = float(got["ridge"].removeprefix("ridge: ").removesuffix(" FLOP/B"))
        assert ridge == pytest.approx(peak / bandwidth, rel=6e-3)
        assert f"{on['bound']}-bound" in shown.said and device in shown.said


def test_the_table_says_the_same_and_marks_the_kernel(show):
    widget = Roofline(RATES, KERNELS)
    shown = show(widget)
    shown.press("ArrowRight")
    assert shown.page.locator("tbody tr").count() == len(KERNELS)
    [current] = shown.page.locator("tr[aria-current]").all_text_contents()
    assert current.startswith("2  softmax, three kernels")
    for row, point in zip(shown.page.locator("tbody tr").all(), widget.trace, strict=True):
        cells = row.locator("td").all_text_contents()
        assert value(cells[3]) == pytest.approx(point["on"][widget.device]["attainable"], rel=6e-3)
        assert cells[6] == point["on"][widget.device]["bound"]


def test_pointing_at_a_kernel_chooses_it(show):
    shown = show(Roofline(RATES, KERNELS))
    for number in (4, 2, 5):
        shown.page.locator("svg text.on", has_text=str(number)).hover()
        assert shown.step == number - 1


def test_marks_lie_on_the_roof_they_belong_to(show):
    """The pixel distances of two kernels are their distances in decades, on both axes."""
    widget = Roofline({"X": (1e12, 1e12)}, [("a", 1e3, 1e5), ("b", 1e3, 1e4), ("c", 1e6, 1e3)])
    shown = show(widget)
    circles = shown.page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('svg circle')].map((c) =>"
        " [c.nextSibling.textContent, [c.getAttribute('cx'), c.getAttribute('cy')].map(Number)]))"
    )
    (ax, ay), (bx, by), (cx, cy) = (circles[name] for name in "123")
    assert (cx - bx) / (bx - ax) == pytest.approx(4)  # 0.01, 0.1, 1000 FLOPs a byte
    assert (by - cy) / (ay - by) == pytest.approx(1)  # 10, 100, 1000 GFLOP/s (the peak)


def test_the_device_chosen_in_python_is_the_one_shown(show):
    shown = show(Roofline(RATES, KERNELS, device="H200"))
    assert shown.page.get_by_label("Device").input_value() == "H200"
    assert "ridge of H200 at 206" in shown.said
