import sys

import pytest

from cupy_kernels import device, gpu_kernel, notices, nvrtc, nvrtc_library


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    """An empty compilation cache for one test."""
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_nvrtc(monkeypatch, fresh_cache):
    """A machine without NVRTC, as macOS is."""
    monkeypatch.setenv("COURSE_NVRTC", "none")
    nvrtc_library.find_library.cache_clear()
    assert nvrtc.find_library() is None
    yield
    nvrtc_library.find_library.cache_clear()


@pytest.fixture
def forget_gpu(monkeypatch):
    """Forget which GPU was found, before the test and after."""
    cached = (device.gpu_capability, device._look_for_gpu, notices.say_once)
    cached += (gpu_kernel._load, gpu_kernel._limits)
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


@pytest.fixture
def no_gpu(monkeypatch, forget_gpu):
    """A machine without CuPy."""
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.fixture
def gpu():
    """An NVIDIA GPU that CuPy can use; the test skips with the reason where there is none."""
    if device.gpu_capability() is None:
        pytest.skip(device.no_gpu_reason())
