"""The NVRTC shared library: where it is, which CUDA headers go with it, and the calls we need."""

import ctypes
import ctypes.util
import functools
import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

# Beside each library, where the CUDA headers of the same installation are.
WHEEL_LIBRARIES = (
    "cu13/lib/libnvrtc.so.13",
    "cu13/bin/x86_64/nvrtc64_130_0.dll",
    "cu13/bin/nvrtc64_130_0.dll",
    "cuda_nvrtc/lib/libnvrtc.so.12",
    "cuda_nvrtc/bin/nvrtc64_120_0.dll",
)
WHEEL_HEADERS = ("cu13/include", "cuda_runtime/include")
TOOLKIT_LIBRARIES = ("lib64/libnvrtc.so", "lib/libnvrtc.so", "bin/nvrtc64_*_0.dll")

# Headers that the prelude stands in for: an empty body keeps their #include legal.
EMPTY_HEADERS = ("cstdint", "stdint.h", "cfloat", "float.h", "cmath", "math.h", "cuda.h")


@functools.cache
def find_library() -> "NvrtcLibrary | None":
    """Load NVRTC from its wheel, else from CUDA_HOME, else the system's; None if there is none.

    The environment variable COURSE_NVRTC names a library outright, or says `none`.
    """
    for path in _candidates():
        try:
            return NvrtcLibrary(path, header_folders())
        except OSError:
            continue  # another platform's file, or a broken installation: try the next
    return None


def header_folders() -> tuple[Path, ...]:
    """Folders with cuda_fp16.h and, where installed, CUDA's C++ libraries (CCCL)."""
    folders = [root / name for root in _wheel_roots() for name in WHEEL_HEADERS]
    folders += [home / "include" for home in _toolkits()]
    first = next((folder for folder in folders if (folder / "cuda_fp16.h").exists()), None)
    if first is None:
        return ()
    return (first, first / "cccl") if (first / "cccl").is_dir() else (first,)


def _candidates() -> Iterator[str]:
    named = os.environ.get("COURSE_NVRTC")
    if named:
        if named != "none":
            yield named
        return
    for root in _wheel_roots():
        yield from (str(root / name) for name in WHEEL_LIBRARIES if (root / name).exists())
    for home in _toolkits():
        yield from (str(path) for name in TOOLKIT_LIBRARIES for path in home.glob(name))
    if system := ctypes.util.find_library("nvrtc"):
        yield system


def _wheel_roots():
    spec = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []


def _toolkits():
    named = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    return [Path(home) for home in (*named, "/usr/local/cuda") if home]


class NvrtcLibrary:
    """One loaded libnvrtc. `.version` is like "13.5", `.include` the folders of its headers."""

    def __init__(self, path: str, include: Sequence[Path]):
        self.path = path
        self.include = tuple(include)
        self._nvrtc = ctypes.CDLL(path)
        self._nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def compile(
        self,
        source: str,
        filename: str,
        flags: Sequence[str],
        name_expressions: Sequence[str],
        output: str,
    ) -> tuple[bytes | None, dict[str, str], str]:
        """Compile once; `output` is "PTX" or "CUBIN".

        Returns (the output, or None if the source does not compile; {name expression: mangled
        name}; the compiler's log).
        """
        program = self._create(source, filename)
        try:
            for expression in name_expressions:
                self._call("nvrtcAddNameExpression", program, expression.encode())
            status = self._nvrtc.nvrtcCompileProgram(program, len(flags), _strings(flags))
            log = self._bytes(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            if status:
                return None, {}, log or self._error_text(status)
            lowered = {name: self._lowered(program, name) for name in name_expressions}
            return self._bytes(program, output), lowered, log
        finally:
            self._nvrtc.nvrtcDestroyProgram(ctypes.byref(program))

    def _create(self, source, filename):
        program = ctypes.c_void_p()
        empty = _strings(["#pragma once\n"] * len(EMPTY_HEADERS))
        names = _strings(EMPTY_HEADERS)
        text, name = source.encode(), filename.encode()
        count = len(EMPTY_HEADERS)
        create = "nvrtcCreateProgram"
        self._call(create, ctypes.byref(program), text, name, count, empty, names)
        return program

    def _lowered(self, program, expression):
        name = ctypes.c_char_p()
        self._call("nvrtcGetLoweredName", program, expression.encode(), ctypes.byref(name))
        return name.value.decode()

    def _bytes(self, program, what):
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw

    def _call(self, function, *arguments):
        status = getattr(self._nvrtc, function)(*arguments)
        if status:
            raise RuntimeError(f"{function} failed: {self._error_text(status)}")

    def _error_text(self, status):
        return self._nvrtc.nvrtcGetErrorString(status).decode()


def _strings(texts):
    return (ctypes.c_char_p * len(texts))(*[text.encode() for text in texts])
