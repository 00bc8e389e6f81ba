"""PTX committed beside the kernels, so that they run where NVRTC does not exist (macOS).

Each file of `ptx/` starts with comment lines that say what it was made from: the fingerprint of
source, headers and options, the compiler, and the mangled names of template instances. A file
serves a source only if the fingerprints agree, so a stale file is never run.

    python -m cupy_kernels.shipped_ptx            # which files are stale or missing
    python -m cupy_kernels.shipped_ptx --rebuild  # compile them anew
"""

import argparse
from pathlib import Path

from cupy_kernels.nvrtc import Compilation, Ptx, compile_ptx
from cupy_kernels.nvrtc_library import find_library

PTX_DIR = Path(__file__).resolve().parent / "ptx"


def find(request: Compilation) -> Ptx | None:
    """Shipped PTX made from exactly this source, headers, options and architecture, or None."""
    fingerprint = request.fingerprint()
    for path in sorted(PTX_DIR.glob("*.ptx")):
        header, text = _read(path)
        if header.get("fingerprint") == [fingerprint]:
            lowered = dict(line.rsplit(" = ", 1) for line in header.get("name", []))
            return Ptx(text, lowered, log="")
    return None


def write(name: str, request: Compilation) -> Path:
    """Compile a request and ship it as ptx/NAME.ptx."""
    compiled = compile_ptx(
        request.source,
        options=request.options,
        name_expressions=request.name_expressions,
        arch=request.arch,
        filename=request.filename,
    )
    lines = [
        f"// fingerprint: {request.fingerprint()}",
        f"// compiler: NVRTC {find_library().version}, {request.arch}",
        *(f"// name: {key} = {value}" for key, value in compiled.lowered_names.items()),
    ]
    PTX_DIR.mkdir(exist_ok=True)
    path = PTX_DIR / f"{name}.ptx"
    path.write_text("\n".join([*lines, "", compiled.text]))
    return path


def _read(path):
    """Split a shipped file into its header, {key: [values]}, and the PTX proper."""
    head, _, text = path.read_text().partition("\n\n")
    header = {}
    for line in head.splitlines():
        key, _, value = line.removeprefix("// ").partition(": ")
        header.setdefault(key, []).append(value)
    return header, text


def kernels_to_ship() -> dict[str, Compilation]:
    """What the course ships PTX of, by file name: the first kernels and those of the registry."""
    from cupy_kernels.first_kernels import ROW_SUM, TRANSPOSE, VECTOR_ADD
    from cupy_kernels.registry import BACKWARD_KERNELS, FORWARD_KERNELS

    kernels = [*FORWARD_KERNELS.values(), *BACKWARD_KERNELS.values()]
    files = [VECTOR_ADD, TRANSPOSE, ROW_SUM, *(file for kernel in kernels for file in kernel.files)]
    return {file.ptx_name: file.compilation for file in files}


def stale() -> list[str]:
    """Names whose shipped PTX is missing or was made from another source."""
    return [name for name, request in kernels_to_ship().items() if find(request) is None]


def main() -> int:
    """Report stale files, or rebuild them all."""
    parser = argparse.ArgumentParser(prog="python -m cupy_kernels.shipped_ptx")
    parser.add_argument("--rebuild", action="store_true", help="compile all shipped PTX anew")
    if parser.parse_args().rebuild:
        for name, request in kernels_to_ship().items():
            print(write(name, request).name)
        return 0
    for name in stale():
        print(f"{name} is stale: run python -m cupy_kernels.shipped_ptx --rebuild")
    return int(bool(stale()))


if __name__ == "__main__":
    raise SystemExit(main())
