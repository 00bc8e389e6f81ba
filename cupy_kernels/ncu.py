"""What the GPU's own counters say of launches: replayed in a child process under Nsight Compute.

ncu can only profile a process that it starts, so a measured launch is recorded with copies of its
arguments (`RecordedLaunch`) and the child (`ncu_replay.py`) launches it again. Counters need
permission; where they are refused, `CountersRefused` says what would help.
"""

import csv
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from cupy_kernels.kernel_source import KernelSource

METRICS = {
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "tma_load_bytes": "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
    "tma_store_bytes": "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum",
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "shared_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "time_ns": "gpu__time_duration.sum",
}

NO_NCU = (
    "Nsight Compute (ncu) is not installed: it comes with the CUDA toolkit; device='sim' counts "
    "without it"
)
NO_PERMISSION = (
    "the driver refuses its counters to ordinary users: run as root, or have an administrator load "
    "it with NVreg_RestrictProfilingToAdminUsers=0; device='sim' counts without them"
)
TOOLKIT_PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
TIME_LIMIT_S = 600


class CountersRefused(RuntimeError):
    """The GPU's counters cannot be had here; the message says why and what to do."""


@dataclass(frozen=True)
class RecordedLaunch:
    """All that a launch needs to happen again. `args` are host copies, taken before it ran."""

    source: KernelSource
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple
    shared_mem: int
    allowed_shared: int


def replay(launches: Sequence[RecordedLaunch]) -> list[dict[str, int | None]]:
    """Counters of each launch, by the names in METRICS; None for one that this GPU lacks.

    Caches are cold for each launch, as ncu flushes them. Raises CountersRefused.
    """
    ncu = _find_ncu()
    with tempfile.TemporaryDirectory(prefix="course-ncu-") as folder:
        recording = Path(folder) / "launches.pickle"
        recording.write_bytes(pickle.dumps(list(launches)))
        command = [ncu, "--csv", "--page", "raw", "--print-units", "base"]
        command += ["--clock-control", "none", "--profile-from-start", "off"]
        command += ["--metrics", ",".join(METRICS.values())]
        command += [sys.executable, "-m", "cupy_kernels.ncu_replay", str(recording)]
        answer = _run(command)
    rows = parse_raw_page(answer.stdout)
    if len(rows) != len(launches):
        raise CountersRefused(_refusal(answer, len(rows), len(launches)))
    return rows


def parse_raw_page(text: str) -> list[dict[str, int | None]]:
    """Rows of ncu's `--csv --page raw` output, one a launch, by the names in METRICS."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    header, _units, *rows = csv.reader(lines[start:])
    tables = (dict(zip(header, row, strict=False)) for row in rows if row[:1] and row[0].isdigit())
    return [
        {name: _number(table.get(metric)) for name, metric in METRICS.items()} for table in tables
    ]


def _find_ncu():
    places = [shutil.which("ncu"), *(path for place in TOOLKIT_PLACES for path in glob(place))]
    found = next((place for place in places if place and os.access(place, os.X_OK)), None)
    if found is None:
        raise CountersRefused(NO_NCU)
    return found


def _run(command):
    # The child must launch on the GPU whatever its parent was told.
    environment = {**os.environ, "COURSE_DEVICE": "gpu"}
    try:
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=TIME_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        limit = f"ncu took more than {TIME_LIMIT_S} s: measure fewer or smaller launches"
        raise CountersRefused(limit) from None


def _refusal(answer, got, wanted):
    said = f"{answer.stdout}\n{answer.stderr}"
    if "ERR_NVGPUCTRPERM" in said or "INSUFFICIENT_PRIVILEGES" in said:
        return NO_PERMISSION
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
    return f"ncu measured {got} of {wanted} launches and ended with: {last.strip()}"


def _number(text):
    """ncu writes 1,024 and 1024.00, and "n/a" for a counter that this GPU lacks."""
    try:
        return round(float((text or "").replace(",", "")))
    except ValueError:
        return None
