"""A chromium for the tests that need one, and a widget shown on a page of its own."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from lessons.widgets.page import standalone_page
from lessons.widgets.roofline import Roofline
from lessons.widgets.snapshots import CHROMIUM_OPTIONS, chromium
from lessons.widgets.tile_rescaling import TileRescaling
from lessons.widgets.traffic import TrafficView
from reference_numpy.flash1_forward import flash1_forward
from reference_numpy.flash2_forward import flash2_forward
from reference_numpy.flash_backward import flash_backward
from reference_numpy.machine import Machine
from reference_numpy.roofline import DEVICES
from reference_numpy.three_kernels import three_kernels


@pytest.fixture(scope="session")
def chromium_path() -> str:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed ([dev] extra)")
    path = chromium()
    if path is None:
        pytest.skip("no chromium on this machine (apt-get install chromium)")
    return path


@pytest.fixture(scope="session")
def browser(chromium_path):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        running = tools.chromium.launch(executable_path=chromium_path, args=CHROMIUM_OPTIONS)
        yield running
        running.close()


MARGINS = 32  # left and right of the widget on its page, pixels


@dataclass
class Shown:
    """A widget on a page, and everything that the page complained about or asked for."""

    page: object
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def box(self):
        return self.page.locator(".fab")

    @property
    def said(self) -> str:
        return self.page.locator(".say p").first.text_content()

    @property
    def step(self) -> int:
        return self.page.evaluate("() => model.get('step')")

    @property
    def numbers(self) -> dict[str, str]:
        """data-k -> text of every number in the picture."""
        return self.page.evaluate(
            "() => Object.fromEntries([...document.querySelectorAll('svg [data-k]')]"
            ".map((node) => [node.dataset.k, node.textContent]))"
        )

    def go(self, k: int) -> None:
        self.page.evaluate("(k) => model.set('step', k)", k)

    def resize(self, width: int) -> None:
        """Make the page so wide that the widget has `width` pixels, and wait for its redrawing."""
        self.page.set_viewport_size({"width": width + MARGINS, "height": 1000})
        self.page.wait_for_function("(w) => innerWidth === w", arg=width + MARGINS)
        frames = (
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        self.page.evaluate(frames)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.box.press(key)

    def button(self, name: str):
        return self.page.get_by_role("button", name=name, exact=True)


@pytest.fixture
def show(browser):
    """`show(widget, width=1100, scheme="light", motion="reduce")` -> Shown; clean at the end."""
    everything = []

    def open_page(widget, width=1100, scheme="light", motion="reduce") -> Shown:
        page = browser.new_page(
            viewport={"width": width + MARGINS, "height": 1000},
            color_scheme=scheme,
            reduced_motion=motion,
        )
        shown = Shown(page)
        page.on("console", lambda message: shown.complaints.append(message.text))
        page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        page.on("request", lambda request: shown.requests.append(request.url))
        page.set_content(standalone_page(widget))
        page.wait_for_function("() => window.unmount !== undefined")
        everything.append(shown)
        return shown

    yield open_page
    for shown in everything:
        shown.page.close()
        outside = [url for url in shown.requests if not url.startswith(("blob:", "data:"))]
        assert (shown.complaints, outside) == ([], [])


N, D, B, SCALE = 48, 8, 16, 0.25


def machine_with(*results, sram_bytes=8 * 1024) -> tuple[Machine, list]:
    """A machine with random fp16 Q, K, V and the named empty arrays, all in HBM."""
    machine = Machine(sram_bytes)
    rng = np.random.default_rng(0)
    inputs = [machine.hbm(name, rng.normal(size=(N, D)).astype(np.float16)) for name in "QKV"]
    return machine, inputs + [machine.empty(*result) for result in results]


def run_three_kernels() -> Machine:
    machine, arrays = machine_with(("S", (N, N)), ("P", (N, N)), ("O", (N, D)))
    three_kernels(machine, *arrays, Br=B, Bc=B, scale=SCALE)
    return machine


def run_flash1() -> Machine:
    machine, arrays = machine_with(("O", (N, D)), ("l", (N,)), ("m", (N,)), ("LSE", (N,)))
    flash1_forward(machine, *arrays, Br=B, Bc=B, scale=SCALE, causal=False)
    return machine


def run_flash2() -> Machine:
    machine, arrays = machine_with(("O", (N, D)), ("LSE", (N,)))
    flash2_forward(machine, *arrays, Br=B, Bc=B, scale=SCALE, causal=False)
    return machine


def run_flash_backward() -> Machine:
    machine, [Q, K, V, O, LSE] = machine_with(("O", (N, D)), ("LSE", (N,)))
    flash2_forward(machine, Q, K, V, O, LSE, Br=B, Bc=B, scale=SCALE, causal=True)
    dO, D_ = machine.hbm("dO", np.ones((N, D), np.float32)), machine.empty("D", (N,))
    dQ, dK, dV = (machine.empty(name, (N, D)) for name in ("dQ", "dK", "dV"))
    flash_backward(
        machine, Q, K, V, O, dO, LSE, D_, dQ, dK, dV, Br=B, Bc=B, scale=SCALE, causal=True
    )
    return machine


def run_copy(rows: int) -> Machine:
    machine = Machine(1024)
    X, Y = (machine.hbm(name, np.zeros((rows, 4), np.float16)) for name in "XY")
    for i in range(rows):
        Y[i : i + 1] = X[i : i + 1]
    return machine


RATES = {name: (gpu.peak_flops, gpu.hbm_bytes_per_s) for name, gpu in DEVICES.items()}
KERNELS = [
    ("elementwise add", 4096**2, 12 * 4096**2),
    ("softmax, three kernels", 5 * 4096**2, 16 * 4096**2),
    ("softmax, one kernel", 5 * 4096**2, 8 * 4096**2),
    ("attention, three kernels", 4 * 64 * 4096**2, 8 * 4096 * 64 + 8 * 4096**2),
    ("attention, K and V read once", 4 * 64 * 4096**2, 8 * 4096 * 64),
]

WIDGETS = {
    "tile_rescaling": lambda: TileRescaling(),
    "traffic": lambda: TrafficView(run_flash1()),
    "roofline": lambda: Roofline(RATES, KERNELS),
}
PICTURES = {
    **WIDGETS,
    "tile_rescaling_long": lambda: TileRescaling(np.linspace(-9.5, 12.25, 24), tile=6),
    "tile_rescaling_local": lambda: TileRescaling(
        [[-np.inf], [4], [2.5, 7]], [1, -2, 3, 5], local=True
    ),
    "traffic_beside": lambda: TrafficView({"three": run_three_kernels(), "flash": run_flash2()}),
    "traffic_backward": lambda: TrafficView(run_flash_backward()),
    "traffic_together": lambda: TrafficView(run_copy(rows=1001)),
}


@pytest.fixture(params=WIDGETS)
def widget(request):
    """Each of the widgets in turn."""
    return WIDGETS[request.param]()


@pytest.fixture(params=PICTURES)
def picture(request):
    """Each of the widgets, and of the shapes that their pictures can take."""
    return PICTURES[request.param]()
