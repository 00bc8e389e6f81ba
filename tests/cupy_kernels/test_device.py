import sys

import pytest

from cupy_kernels import device
from tests.cupy_kernels import fake_cupy


def test_without_a_gpu_kernels_run_in_the_simulator_and_it_is_said_once(no_gpu, capsys):
    assert [device.choose("k"), device.choose("other", "sm_80")] == ["sim", "sim"]
    told = capsys.readouterr().err
    assert told == "no GPU (CuPy is not installed): kernels run in the simulator\n"


def test_a_forced_simulator_is_silent(no_gpu, capsys, monkeypatch):
    assert device.choose("k", device="sim") == "sim"
    monkeypatch.setenv("COURSE_DEVICE", "sim")
    assert device.choose("k") == "sim"
    assert capsys.readouterr().err == ""


def test_a_gpu_demanded_in_vain_is_an_error(no_gpu, monkeypatch):
    with pytest.raises(RuntimeError, match="k cannot run on the GPU: no GPU"):
        device.choose("k", device="gpu")
    monkeypatch.setenv("COURSE_DEVICE", "gpu")
    with pytest.raises(RuntimeError, match="no GPU"):
        device.choose("k")
    assert device.choose("k", device="sim") == "sim", "the argument wins over the environment"


def test_an_unknown_device_is_refused(no_gpu):
    with pytest.raises(ValueError, match="device is 'tpu', it is one of gpu, sim or None"):
        device.choose("k", device="tpu")


@pytest.mark.parametrize(
    ("capability", "arch", "where"),
    [
        ("90", None, "gpu"),
        ("90", "sm_80", "gpu"),
        ("90", "sm_90a", "gpu"),
        ("90", "compute_90a", "gpu"),
        ("80", "sm_90a", "sim"),
        ("80", "sm_90", "sim"),
        ("100", "sm_90", "gpu"),
        ("100", "sm_90a", "sim"),  # Hopper's own instructions are no other GPU's
        ("120", "sm_100a", "sim"),
    ],
)
def test_the_gpu_is_taken_only_if_it_can_run_the_kernel(
    forget_gpu, monkeypatch, capability, arch, where
):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make(lambda *_: None, capability))
    assert device.choose("k", arch) == where


def test_the_architecture_to_compile_for(forget_gpu, monkeypatch):
    for capability, arch in (
        ("80", "sm_80"),
        ("89", "sm_89"),
        ("90", "sm_90a"),
        ("100", "sm_100a"),
    ):
        device.gpu_capability.cache_clear()
        device._look_for_gpu.cache_clear()
        monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make(lambda *_: None, capability))
        assert device.gpu_arch() == arch


def test_why_the_gpu_is_not_taken_is_said(forget_gpu, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.make(lambda *_: None, "80"))
    device.choose("k", "sm_90a")
    told = capsys.readouterr().err
    assert "this GPU has compute capability 8.0, sm_90a is asked for" in told
    with pytest.raises(RuntimeError, match=r"k cannot run on the GPU: this GPU has"):
        device.choose("k", "sm_90a", device="gpu")
