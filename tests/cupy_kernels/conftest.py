import pytest

from cupy_kernels import nvrtc, nvrtc_library


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
