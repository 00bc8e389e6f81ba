"""A CUDA source string in, PTX or a cubin out: with no GPU, no driver and no CUDA toolkit.

NVRTC and the CUDA headers come from PyPI wheels (Linux and Windows). Every compilation adds C++17,
`-lineinfo`, the CUDA headers, this folder (a kernel may say `#include "warp_reduce.cuh"`) and
`nvrtc_prelude.cuh`. Results are kept on disk (`compile_cache`). Where NVRTC is missing, the PTX
shipped with the course serves the course's own kernels (`shipped_ptx`).
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cupy_kernels import compile_cache
from cupy_kernels.compile_errors import CompileError, NvrtcNotFound, source_line_of_ptx_error
from cupy_kernels.nvrtc_library import NvrtcLibrary, find_library

KERNEL_DIR = Path(__file__).resolve().parent
PRELUDE = "nvrtc_prelude.cuh"

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
INCLUDE_OPTION = re.compile(r"(?:-I|--?include-path=)(.+)")
ARCH_OPTION = re.compile(r"--?(?:arch|gpu-architecture)=(\S+)")
FILE_DIRECTIVE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"]+)', re.MULTILINE)


@dataclass(frozen=True)
class Ptx:
    """PTX text, the mangled name of each name expression, and the compiler's log."""

    text: str
    lowered_names: dict[str, str]
    log: str


@dataclass(frozen=True)
class Cubin:
    """Machine code (an ELF image) for one architecture; ptxas's figures are in `log`."""

    image: bytes
    lowered_names: dict[str, str]
    log: str


@dataclass(frozen=True)
class Compilation:
    """A request to compile, in normal form: equal requests give equal results under one NVRTC."""

    source: str
    options: tuple[str, ...] = ()
    name_expressions: tuple[str, ...] = ()
    arch: str = "compute_90a"
    filename: str = "kernel.cu"

    @classmethod
    def of(cls, kind, source, options, name_expressions, arch, filename):
        """Move `-arch` out of the options (it wins over `arch`); C++17 unless they say another.

        `kind` is "compute" for a virtual architecture (PTX) or "sm" for a real one (cubin).
        """
        options, named = split_arch(options)
        if not any(option.lstrip("-").startswith("std=") for option in options):
            options += ("-std=c++17",)
        number = (named or arch).rpartition("_")[2]
        return cls(source, options, tuple(name_expressions), f"{kind}_{number}", filename)

    def include_folders(self) -> list[Path]:
        """Folders of ours and the student's that `#include` searches, CUDA's own left out."""
        named = [match[1] for option in self.options if (match := INCLUDE_OPTION.match(option))]
        return [KERNEL_DIR, *(Path(folder).resolve() for folder in named)]

    def fingerprint(self) -> str:
        """Hash of all that decides the result but the compiler's version and the file's name."""
        headers = project_headers(self.source, self.include_folders())
        lists = ["options", *self.options, "names", *self.name_expressions, "headers"]
        return compile_cache.digest(self.source, self.arch, *lists, *sum(headers.items(), ()))


def compile_ptx(
    source: str,
    *,
    options: Sequence[str] = (),
    name_expressions: Sequence[str] = (),
    arch: str = "compute_90a",
    filename: str = "kernel.cu",
) -> Ptx:
    """Compile CUDA C++ to PTX, or fetch it from the cache.

    `name_expressions` name template instances, such as "scale<float>". An `-arch=` among the
    options wins over `arch`. Raises CompileError with the student's own line, and NvrtcNotFound
    where there is neither NVRTC nor shipped PTX for this very source.
    """
    request = Compilation.of("compute", source, options, name_expressions, arch, filename)
    library = find_library()
    if library is None:
        from cupy_kernels import shipped_ptx

        return shipped_ptx.find(request) or _raise_not_found(filename)
    entry = _compiled(library, request, "PTX")
    return Ptx(entry["output"], entry["lowered_names"], entry["log"])


def compile_cubin(
    source: str,
    *,
    options: Sequence[str] = (),
    name_expressions: Sequence[str] = (),
    arch: str = "sm_90a",
    filename: str = "kernel.cu",
) -> Cubin:
    """Compile CUDA C++ to machine code for `arch`; the log holds ptxas's figures.

    Raises CompileError, and NvrtcNotFound where NVRTC is missing (shipped PTX cannot help here).
    """
    request = Compilation.of("sm", source, options, name_expressions, arch, filename)
    entry = _compiled(find_library() or _raise_not_found(filename), request, "CUBIN")
    return Cubin(bytes.fromhex(entry["output"]), entry["lowered_names"], entry["log"])


def split_arch(options: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """Split compiler options into (all but -arch, the value of the last -arch or None)."""
    if isinstance(options, str):
        raise TypeError(f"options is a tuple of strings: write options=({options!r},)")
    named = [match[1] for option in options if (match := ARCH_OPTION.fullmatch(option))]
    rest = tuple(option for option in options if not ARCH_OPTION.fullmatch(option))
    return rest, named[-1] if named else None


def project_headers(source: str, folders: Sequence[Path]) -> dict[str, str]:
    """Headers that `source` includes from `folders`, directly or not, and the prelude, as text."""
    texts, waiting = {}, [PRELUDE, *INCLUDE.findall(source)]
    while waiting:
        name = waiting.pop()
        path = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if path and name not in texts:
            texts[name] = path.read_text()
            waiting += INCLUDE.findall(texts[name])
    return dict(sorted(texts.items()))


def _compiled(library: NvrtcLibrary, request: Compilation, output: str) -> dict:
    """The compilation's result as JSON data, from the cache or from the compiler."""
    key = compile_cache.digest(request.fingerprint(), request.filename, output, library.version)
    entry = compile_cache.load(key)
    if entry is None:
        entry = _compile(library, request, output)
        compile_cache.store(key, entry)
    return entry


def _compile(library, request, output):
    flags = [f"-arch={request.arch}", *request.options, "-lineinfo", f"-include={PRELUDE}"]
    flags += [f"-I{folder}" for folder in (KERNEL_DIR, *library.include)]
    flags += ["--ptxas-options=-v"] if output == "CUBIN" else []
    image, lowered, log = library.compile(
        request.source, request.filename, flags, request.name_expressions, output
    )
    if image is None:
        raise CompileError(request.filename, log, _inline_asm_error(library, request, log))
    text = image.hex() if output == "CUBIN" else _portable(image, library, request)
    return {"output": text, "lowered_names": lowered, "log": log}


def _inline_asm_error(library, request, log):
    """ptxas names a line of PTX; find the student's line through the PTX of the same source."""
    if "ptx input, line" not in log:
        return ""
    virtual = replace(request, arch=request.arch.replace("sm_", "compute_"))
    ptx = _compile(library, virtual, "PTX")["output"]
    return source_line_of_ptx_error(log, ptx, request.source, request.filename)


def _portable(image, library, request):
    """PTX text whose `.file` lines are relative: the same on every machine."""
    folders = [*library.include, *request.include_folders(), Path.cwd()]
    prefixes = sorted((f"{folder}{os.sep}" for folder in folders), key=len, reverse=True)

    def relative(found):
        prefix = next((p for p in prefixes if found[2].startswith(p)), "")
        return found[1] + found[2].removeprefix(prefix)

    return FILE_DIRECTIVE.sub(relative, image.rstrip(b"\0").decode())


def _raise_not_found(filename):
    raise NvrtcNotFound(
        f"{filename} cannot be compiled: NVRTC is not installed (Linux, Windows: pip install "
        "nvidia-cuda-nvrtc nvidia-cuda-runtime; macOS: run the course's own kernels, whose PTX is "
        "shipped, or a Linux machine for your own)"
    )
