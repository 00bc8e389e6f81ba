"""Still pictures of the widgets, for places that run no JavaScript.

    python -m lessons.widgets.snapshots           # lessons/images/NAME.png
    python -m lessons.widgets.snapshots --pages DIR   # and a self-contained page of each in DIR

Needs playwright (the [dev] extra) and a chromium. Lessons show the picture above the widget.
"""

import argparse
import io
import shutil
import sys
from pathlib import Path

import numpy as np

from lessons.widgets.page import standalone_page
from lessons.widgets.roofline import Roofline
from lessons.widgets.stepper import SteppedWidget
from lessons.widgets.tile_rescaling import TileRescaling
from lessons.widgets.traffic import TrafficView
from reference_numpy.flash1_forward import flash1_forward
from reference_numpy.flash2_forward import flash2_forward
from reference_numpy.flash_backward import flash_backward
from reference_numpy.machine import Machine
from reference_numpy.roofline import DEVICES
from reference_numpy.standard_backward import standard_backward
from reference_numpy.three_kernels import three_kernels

IMAGES = Path(__file__).parent.parent / "images"
WIDTH = 760  # pixels; about the width of a notebook's text
CHROMIUM_OPTIONS = ["--no-sandbox", "--disable-gpu"]


def chromium() -> str | None:
    """Path of an installed chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


def pictured() -> dict[str, tuple[SteppedWidget, int]]:
    """NAME -> (widget, step) of every picture: each first frame, and a telling one."""
    rescaling, traffic, roofline = TileRescaling(), TrafficView(_flash1()), _roofline()
    two = TrafficView({"three kernels": _three_kernels(), "FlashAttention-2": _flash2()})
    backward = TrafficView(
        {"standard backward": _standard_backward(), "recomputing backward": _flash_backward()}
    )
    return {
        "tile_rescaling": (rescaling, 0),
        "tile_rescaling_added": (rescaling, 4),
        "traffic": (traffic, 0),
        "traffic_beside": (two, 22),
        "traffic_backward": (backward, 44),
        "roofline": (roofline, 0),
        "roofline_flash": (roofline, len(roofline.trace) - 1),
    }


N, D, B, SCALE = 64, 16, 16, 0.25


def _machine(*results) -> tuple[Machine, list]:
    machine = Machine(sram_bytes=8 * 1024)
    rng = np.random.default_rng(0)
    inputs = [machine.hbm(name, rng.normal(size=(N, D)).astype(np.float16)) for name in "QKV"]
    return machine, inputs + [machine.empty(*result) for result in results]


def _three_kernels() -> Machine:
    square = ((N, N), np.float16)
    machine, arrays = _machine(("S", *square), ("P", *square), ("O", (N, D), np.float16))
    three_kernels(machine, *arrays, Br=B, Bc=B, scale=SCALE)
    return machine


def _flash1() -> Machine:
    machine, arrays = _machine(("O", (N, D)), ("l", (N,)), ("m", (N,)), ("LSE", (N,)))
    flash1_forward(machine, *arrays, Br=B, Bc=B, scale=SCALE, causal=False)
    return machine


def _flash2() -> Machine:
    machine, arrays = _machine(("O", (N, D), np.float16), ("LSE", (N,)))
    flash2_forward(machine, *arrays, Br=B, Bc=B, scale=SCALE, causal=False)
    return machine


TALL, SQUARE = (48, D), (48, 48)  # lesson 04's sizes


def _backward_machine(inputs: dict, results: dict) -> tuple[Machine, list]:
    """Ones everywhere: the picture shows what moves, not what comes of it."""
    machine = Machine(sram_bytes=10 * 1024)
    arrays = [machine.hbm(name, np.ones(shape, np.float32)) for name, shape in inputs.items()]
    return machine, arrays + [machine.empty(name, shape) for name, shape in results.items()]


def _standard_backward() -> Machine:
    inputs = dict.fromkeys("QKV", TALL) | {"P": SQUARE, "dO": TALL}
    results = dict.fromkeys(("dP", "dS"), SQUARE) | dict.fromkeys(("dQ", "dK", "dV"), TALL)
    machine, arrays = _backward_machine(inputs, results)
    standard_backward(machine, *arrays, Br=B, Bc=B, scale=SCALE)
    return machine


def _flash_backward() -> Machine:
    inputs = dict.fromkeys(("Q", "K", "V", "O", "dO"), TALL) | {"LSE": TALL[:1]}
    results = {"D": TALL[:1]} | dict.fromkeys(("dQ", "dK", "dV"), TALL)
    machine, arrays = _backward_machine(inputs, results)
    flash_backward(machine, *arrays, Br=B, Bc=B, scale=SCALE, causal=False)
    return machine


def _roofline() -> Roofline:
    n, d, fp32, fp16 = 4096, 64, 4, 2
    matmuls = 4 * n * n * d
    kernels = [
        ("elementwise add", n * n, 3 * n * n * fp32),
        ("softmax, three kernels", 5 * n * n, 4 * n * n * fp32),
        ("softmax, one kernel", 5 * n * n, 2 * n * n * fp32),
        ("attention, three kernels", matmuls + 5 * n * n, (4 * n * d + 4 * n * n) * fp16),
        ("attention, K and V read once", matmuls + 5 * n * n, 4 * n * d * fp16),
    ]
    rates = {name: (gpu.peak_flops, gpu.hbm_bytes_per_s) for name, gpu in DEVICES.items()}
    return Roofline(rates, kernels)


def photograph(browser, widget: SteppedWidget, step: int) -> bytes:
    """A PNG of the widget's box at `step`, light theme, in a palette of 256 colours."""
    from PIL import Image

    page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
    page.set_content(standalone_page(widget))
    page.wait_for_function("() => window.model !== undefined")
    page.evaluate("(k) => model.set('step', k)", step)
    page.wait_for_function("() => document.getAnimations().length === 0")
    png = page.locator(".fab").screenshot()
    page.close()
    small = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        small, "png", optimize=True
    )
    return small.getvalue()


def main(arguments: list[str] | None = None) -> int:
    """Write every picture, and the pages if asked; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, default=IMAGES, help="folder of the pictures")
    parser.add_argument("--pages", type=Path, help="write self-contained pages to this folder")
    folders = parser.parse_args(arguments)
    program = chromium()
    if program is None:
        print("no chromium: install it (apt-get install chromium) and run this again")
        return 1
    _take_all(program, folders.images)
    if folders.pages:
        folders.pages.mkdir(parents=True, exist_ok=True)
        for name, (widget, step) in pictured().items():
            if step == 0:
                (folders.pages / f"{name}.html").write_text(standalone_page(widget), "utf-8")
    return 0


def _take_all(program: str, folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        for name, (widget, step) in pictured().items():
            png = photograph(browser, widget, step)
            (folder / f"{name}.png").write_bytes(png)
            print(f"{name}.png  {len(png):,} bytes")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
