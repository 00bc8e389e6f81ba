"""The tile-rescaling widget where students meet it: a notebook in JupyterLab, with a kernel."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.lessons.widgets.lab_server import free_port, lab_environment, wait_for

pytestmark = pytest.mark.browser

CONNECTED = """() => {
  const context = window.jupyterapp?.shell.currentWidget?.sessionContext;
  return context?.session?.kernel?.connectionStatus === 'connected'
    && context.kernelDisplayStatus === 'idle';
}"""
CELLS = [
    "from lessons.widgets.tile_rescaling import TileRescaling\nwidget = TileRescaling()\nwidget",
    "print('kernel sees', widget.step, widget.scores, round(widget.trace[-1]['l'], 4))",
]


def write_notebook(folder: Path) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, folder / "lesson.ipynb")


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab that serves one notebook, on this machine only."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed ([notebooks] extra)")
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    write_notebook(notebooks)
    port = free_port()
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--port={port}", "--IdentityProvider.token=", "--ServerApp.password=",
        "--expose-app-in-browser", f"--ServerApp.root_dir={notebooks}", "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(
            command, env=lab_environment(tmp_path), cwd=tmp_path, stdout=log, stderr=log
        )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(address, server, tmp_path / "lab.log")
        yield address
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def notebook(lab, chromium_path, tmp_path, browser):
    """The notebook's page with its kernel running, and what it asked for and complained of."""
    context = browser.new_context(viewport={"width": 1300, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(90_000)
    page.errors, page.outside = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda m: m.type == "error" and page.errors.append(m.text))
    page.on("request", lambda r: r.url.startswith(("http", "ws")) and page.outside.append(r.url))
    page.goto(f"{lab}/doc/tree/lesson.ipynb?reset")
    page.wait_for_function(CONNECTED)
    yield page
    context.close()


def run(page, command: str) -> None:
    """Execute a JupyterLab command and wait for what it starts."""
    page.evaluate("(command) => window.jupyterapp.commands.execute(command)", command)


def kernel_says(page, expected: str) -> bool:
    """Run the second cell until it prints `expected`: a step reaches the kernel a moment later."""
    page.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 1; }")
    said = page.locator(".jp-OutputArea-output", has_text="kernel sees")
    for _ in range(20):
        run(page, "notebook:run-cell")
        if said.text_content().strip() == expected:
            return True
        page.wait_for_timeout(200)
    raise AssertionError(f"the kernel says {said.text_content()!r}, not {expected!r}")


def test_a_student_steps_edits_and_the_kernel_follows(notebook, lab):
    page = notebook
    run(page, "notebook:run-all-cells")
    box = page.locator(".fab")
    box.locator("svg").wait_for()
    number = lambda key: box.locator(f"[data-k={key}]").text_content()  # noqa: E731
    said = lambda: box.locator(".say p").first.text_content()  # noqa: E731
    assert (number("factor"), number("m")) == ("–", "3")

    for _ in range(4):
        box.press("ArrowRight")
    assert (number("factor"), number("l_rescaled"), number("l")) == ("0.1353", "0.1537", "1.2034")
    assert said().startswith("Tile 2 of 2, add: 0.1537 plus 0.0498 plus 1 gives l = 1.2034.")
    assert said() == box.locator("svg").get_attribute("aria-label")
    assert kernel_says(page, "kernel sees 4 [[1.0, 3.0], [2.0, 5.0]] 1.2034")

    box.press("d")  # twice would delete the cell if the notebook heard it
    box.press("d")
    field = box.get_by_role("textbox", name="Scores")
    field.fill("4, 4 | -inf, 4")
    field.press("Enter")
    box.press("End")
    assert (number("l"), number("out0"), number("out2")) == ("3", "0.3333", "0")
    assert kernel_says(page, "kernel sees 5 [[4.0, 4.0], [-inf, 4.0]] 3.0")
    assert page.evaluate("() => jupyterapp.shell.currentWidget.content.widgets.length") == 2

    assert page.errors == []
    local = (lab, lab.replace("http", "ws"))
    assert [url for url in page.outside if not url.startswith(local)] == []
