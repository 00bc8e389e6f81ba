"""`python -m cupy_kernels list | resources FILE | ptx FILE`: look at kernels from a terminal."""

import argparse
import json
import sys
from pathlib import Path

from cupy_kernels.compile_errors import CompileError, NvrtcNotFound
from cupy_kernels.nvrtc import compile_ptx
from cupy_kernels.registry import BACKWARD_KERNELS, FORWARD_KERNELS
from cupy_kernels.resources import all_resources


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except (CompileError, NvrtcNotFound, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="python -m cupy_kernels", description=__doc__)
    commands = parser.add_subparsers(required=True)
    listing = commands.add_parser("list", help="the kernels of forward(...) and backward(...)")
    listing.set_defaults(run=_list)
    for name, run, arch, what in (
        ("resources", _resources, "sm_90a", "registers, spills and memory of every kernel in FILE"),
        ("ptx", _ptx, "compute_90a", "the PTX that NVRTC makes of FILE"),
    ):
        command = commands.add_parser(name, help=what)
        command.add_argument("file", type=Path, help="a CUDA source, such as naive_scores.cu")
        command.add_argument("--arch", default=arch, help=f"architecture (default {arch})")
        command.add_argument("--option", action="append", default=[], help="compiler option")
        command.add_argument("--name", action="append", default=[], help="template instance")
        command.set_defaults(run=run)
    for command in (listing, commands.choices["resources"]):
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _list(arguments):
    rows = [
        {"name": k.name, "dtypes": k.dtypes, "head_dims": k.head_dims, "summary": k.summary}
        for k in (*FORWARD_KERNELS.values(), *BACKWARD_KERNELS.values())
    ]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        dims = ", ".join(map(str, row["head_dims"] or ["any"]))
        print(f"{row['name']:<{width}}  {', '.join(row['dtypes'])}; d = {dims}; {row['summary']}")


def _resources(arguments):
    found = all_resources(**_source(arguments)).values()
    if arguments.json:
        print(json.dumps([kernel.to_dict() for kernel in found], indent=1))
        return
    for kernel in found:
        print(kernel, kernel.occupancy(min(kernel.max_threads, 128)), sep="\n  128 threads: ")


def _ptx(arguments):
    print(compile_ptx(**_source(arguments)).text)


def _source(arguments):
    return {
        "source": arguments.file.read_text(),
        "options": arguments.option,
        "name_expressions": arguments.name,
        "arch": arguments.arch,
        "filename": arguments.file.name,
    }


if __name__ == "__main__":
    sys.exit(main())
