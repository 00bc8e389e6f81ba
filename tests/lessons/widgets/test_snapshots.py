"""The still pictures and the pages that need no Jupyter."""

import re

import pytest

from lessons.widgets import snapshots
from lessons.widgets.page import standalone_page
from tests.lessons.widgets.conftest import WIDGETS


def png_width(data: bytes) -> int:
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(data[16:20], "big")


def test_every_picture_is_there_and_small():
    names = {path.stem for path in snapshots.IMAGES.glob("*.png")}
    assert names >= snapshots.pictured().keys()
    for name in snapshots.pictured():
        data = (snapshots.IMAGES / f"{name}.png").read_bytes()
        assert png_width(data) <= snapshots.WIDTH
        assert len(data) < 60_000, name


@pytest.mark.browser
def test_a_picture_is_taken_at_the_step_asked_for(browser):
    pytest.importorskip("PIL", reason="Pillow is not installed ([notebooks] extra)")
    widget, step = snapshots.pictured()["tile_rescaling_added"]
    added, first = (snapshots.photograph(browser, widget, k) for k in (step, 0))
    assert png_width(added) == png_width(first) == snapshots.WIDTH - 32
    assert added != first


@pytest.mark.parametrize("name", WIDGETS)
def test_a_page_is_self_contained(name):
    page = standalone_page(WIDGETS[name]())
    assert not re.search(r"(src|href)=.?[\"']?https?:", page)
    assert not re.search(r"\bimport\s*\(?[\"']", page)
    assert page.count("<script") == page.count("</script>") == 1


def test_no_chromium_is_said_in_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(snapshots, "chromium", lambda: None)
    assert snapshots.main(["--images", str(tmp_path)]) == 1
    assert "no chromium: install it" in capsys.readouterr().out
