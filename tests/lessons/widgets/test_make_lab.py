"""`make lab` as a student types it: the copied lessons open, and their pictures are served."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lessons.widgets.lab_server import ROOT, free_port, lab_environment, wait_for

pytestmark = pytest.mark.browser

OFFLINE = (
    "--no-browser --allow-root --ip=127.0.0.1 --IdentityProvider.token= --LabApp.news_url=None "
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"
)
PICTURED = {
    "00_the_machine.ipynb": "roofline.png",
    "04_flash_backward.ipynb": "traffic_backward.png",
}


@pytest.fixture
def course(tmp_path) -> Path:
    """The course as far as `make lab` needs it, without a my_lessons/."""
    folder = tmp_path / "course"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "lessons", folder / "lessons")
    return folder


@pytest.fixture
def lab(course, tmp_path):
    """The address that `make lab` serves; nothing is installed for it."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed ([notebooks] extra)")
    venv, port = sys.prefix, free_port()
    options = f"LAB_ARGS={OFFLINE} --port={port}"
    installed = [f"--old-file={venv}/installed-{what}" for what in ("base", "all")]
    environment = lab_environment(tmp_path) | {"PYTHONPATH": str(course)}
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(
            ["make", *installed, "lab", f"VENV={venv}", options],
            env=environment, cwd=course, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wait_for(f"http://127.0.0.1:{port}", server, tmp_path / "lab.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def test_the_pictures_of_the_copied_lessons_are_seen(lab, browser):
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.set_default_timeout(90_000)
    page.goto(lab)
    page.wait_for_url("**/lab/tree/my_lessons")
    for notebook, picture in PICTURED.items():
        page.get_by_role("listitem").filter(has_text=notebook).dblclick()
        shown = page.locator(f".jp-NotebookPanel:not(.lm-mod-hidden) img[src*='{picture}']")
        shown.scroll_into_view_if_needed()
        page.wait_for_function("(image) => image.complete", arg=shown.element_handle())
        assert shown.evaluate("(image) => image.naturalWidth") > 0, f"{notebook}: {picture}"
    page.close()
