"""Which of the GPU's counters answer which of the simulator's, and how ncu is asked for them."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

from cupy_kernels import ncu

TIME_LIMIT_S = 240
LSU = "l1tex__t_{what}_pipe_lsu_mem_{space}_op_{op}.sum"
SASS_SECTORS = "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_{op}.sum"
WAVEFRONTS = "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum"


def _lsu(what, space, *ops):
    return tuple(LSU.format(what=what, space=space, op=op) for op in ops)


def _each(pattern, *ops):
    return tuple(pattern.format(op=op) for op in ops)


# Simulator's count: (hardware counters whose sum it must equal, where it must).
COUNTERPARTS = {
    "load_sectors": _lsu("sectors", "global", "ld"),
    "load_requests": _lsu("requests", "global", "ld"),
    "store_sectors": _lsu("sectors", "global", "st"),
    "store_requests": _lsu("requests", "global", "st"),
    "cp_async_moves": _each(SASS_SECTORS, "ldgsts"),
    "atomic_sectors": _each(SASS_SECTORS, "atom", "red"),
    "atomic_requests": _lsu("requests", "global", "atom", "red"),
    "local_sectors": _lsu("sectors", "local", "ld", "st"),
    "local_requests": _lsu("requests", "local", "ld", "st"),
    "shared_wavefronts": _each(WAVEFRONTS, "ld", "st", "ldsm", "stsm", "atom"),
    "shared_conflicts": _each(CONFLICTS, "ld", "st", "atom"),
    "mma": ("sm__inst_executed_pipe_tensor.sum",),
}
# In kernels with cp.async, whose sectors the counter above would include.
PLAIN_LOADS = _each(SASS_SECTORS, "ld")
# Counted where something differs, so that it can be explained: everything the device has on
# cp.async, on shared wavefronts by kind of access, and on the traffic of the load-store unit.
CLUES = re.compile(
    r"(ldgsts|ldsm|stsm|wavefronts_mem_(shared|lg)|bank_conflicts.*shared"
    r"|t_(sectors|requests)_pipe_lsu_mem_(global|local|lg)"
    r"|sass_inst_executed_op_(global|shared|local|ldgsts|ldsm|generic)|inst_executed_pipe_tensor"
    r"|xbar2l1tex_read_sectors)"
)


def available() -> tuple[list[str], list[str]]:
    """This GPU's metrics, `.sum` appended: the counterparts, and the clues beside them."""
    wanted = {name for names in (*COUNTERPARTS.values(), PLAIN_LOADS) for name in names}
    command = [ncu._find_ncu(), "--query-metrics"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    named = re.findall(r"^\s*([a-z]\w+__\w+)", answer.stdout, re.MULTILINE)
    here = {f"{name}.sum" for name in named} or wanted
    clues = {f"{name}.sum" for name in named if CLUES.search(name)}
    return sorted(wanted & here), sorted(clues - wanted)


def profile(command: list[str], metrics: list[str], log: Path) -> list[dict]:
    """Run a Python command under ncu; one dict a profiled launch: its kernel and its counters."""
    wrapped = [ncu._find_ncu(), "--csv", "--page", "raw", "--print-units", "base"]
    wrapped += [
        "--clock-control",
        "none",
        "--profile-from-start",
        "off",
        "--target-processes",
        "all",
    ]
    wrapped += ["--metrics", ",".join(metrics), sys.executable, *command]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with log.with_suffix(".csv").open("w+") as out, log.with_suffix(".err").open("w") as err:
        try:
            subprocess.run(wrapped, stdout=out, stderr=err, env=environment, timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            err.write(f"ncu took more than {TIME_LIMIT_S} s\n")
        out.seek(0)
        return rows_of(out.read())


def rows_of(text: str) -> list[dict]:
    """Launches in ncu's raw CSV page, in order: {"kernel": name, metric: value or None}."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    header, _units, *rows = csv.reader(lines[start:])
    tables = [dict(zip(header, row, strict=False)) for row in rows if len(row) == len(header)]
    return [
        {"kernel": table["Kernel Name"]}
        | {name: ncu._number(value) for name, value in table.items() if "__" in name}
        for table in tables
    ]
