import os
import subprocess
import sys

import pytest

from autograder import doctor_report
from autograder.doctor_report import doctor

HEAVY = ("torch", "matplotlib", "rich", "nbformat", "IPython", "cupy", "jsonschema")


def parts():
    return {part.name: part for part in doctor().parts}


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a program called nvidia-smi first on the path."""

    def put(script):
        file = tmp_path / "nvidia-smi"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    return put


def test_versions_are_those_installed():
    import numpy

    assert parts()["numpy"].found == numpy.__version__
    assert parts()["python"].found == sys.version.split()[0]


def test_what_is_missing_has_a_remedy(monkeypatch):
    monkeypatch.setattr(doctor_report, "installed", lambda *names: "")
    monkeypatch.setattr(doctor_report, "find_library", lambda name: None)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    for name in ("numpy", "jupyterlab", "anywidget", "NVRTC", "torch"):
        assert "pip install" in parts()[name].consequence
    assert "numpy      not found · " in repr(doctor())


def test_one_line_for_each_part():
    assert len(repr(doctor()).splitlines()) == len(doctor().parts)


def test_a_gpu_is_named(program, monkeypatch):
    program("echo 'NVIDIA H200, 9.0, 580.65'")
    assert parts()["GPU"].found == "NVIDIA H200, 9.0, 580.65"
    assert "pip install" in parts()["cupy"].consequence or parts()["cupy"].found


@pytest.mark.parametrize("script", ["exit 9", "echo"])
def test_a_driver_without_a_gpu(program, script):
    program(script)
    assert parts()["GPU"].found == ""
    assert "skipped" in parts()["GPU"].consequence


def test_a_forced_device_is_said(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "sim")
    assert str(parts()["kernels"]).endswith("in the simulator · COURSE_DEVICE says so")


def test_without_a_wall_it_says_so(monkeypatch):
    from autograder.isolation import wall

    monkeypatch.setattr(wall, "best_wall", lambda: wall.NO_WALL)
    assert "only those you trust" in parts()["grade"].consequence
    monkeypatch.setattr(wall, "best_wall", lambda: wall.bubblewrap("bwrap"))
    assert parts()["grade"] == doctor_report.Part(
        "grade", "behind a wall (bubblewrap), with time and memory limits"
    )


def test_html_is_escaped(program):
    program("echo '<b>GPU</b>'")
    assert "<b>GPU" not in doctor()._repr_html_()


def fresh_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("names", ["doctor", "check, ready, hint, progress, doctor"])
def test_imports_are_light(names):
    code = f"""
import sys, time
import autograder
from autograder import {names}
print(time.process_time(), [m for m in {HEAVY!r} if m in sys.modules])
"""
    seconds, heavy = fresh_python(code).split(" ", 1)
    assert heavy == "[]"
    assert float(seconds) < 0.5  # of this process's own time, Python's start included


def test_names_stay_what_they_are_when_imported_again():
    code = "\n".join(["from autograder import check, doctor, hint, progress, ready"] * 2)
    assert fresh_python(f"{code}\nprint(all(map(callable, (check, doctor, progress))))") == "True"


def test_an_unknown_name_is_an_attribute_error():
    import autograder

    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        autograder.chekc  # noqa: B018
