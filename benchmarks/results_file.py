"""Recorded results: one JSON file a run, flat rows, the newest file of a suite is the truth."""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
COLUMNS = ("suite", "name", "dtype", "d", "N", "causal", "device", "metric", "value", "unit")
COLUMNS += ("spread", "peer", "peer_value", "ratio")
PACKAGES = ("numpy", "ml_dtypes", "cupy-cuda13x", "nvidia-cuda-nvrtc")
PACKAGES += ("torch", "nvidia-cudnn-cu13")  # the peers


def row(suite: str, name: str, metric: str, value, unit: str, **columns) -> dict:
    """One flat result; columns that do not apply are None. Raises TypeError for an unknown one."""
    known = {"suite": suite, "name": name, "metric": metric, "value": value, "unit": unit}
    unknown = set(columns) - set(COLUMNS)
    if unknown:
        raise TypeError(f"a result has no column {', '.join(sorted(unknown))}")
    return {key: (known | columns).get(key) for key in COLUMNS}


def write(name: str, rows: list[dict], notes: dict | None = None) -> Path:
    """Write `benchmarks/results/NAME.json` with the date, the machine and the command."""
    path = RESULTS / f"{name.removesuffix('.json')}.json"
    path.parent.mkdir(exist_ok=True)
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    record = {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), **_machine()}
    record |= {"command": command, **(notes or {}), "rows": rows}
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def newest(suite: str) -> dict | None:
    """The newest recorded result that holds rows of `suite`, or None."""
    records = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    fitting = [r for r in records if any(x["suite"] == suite for x in r["rows"])]
    return max(fitting, key=lambda record: record["date"], default=None)


def _machine():
    gpu, driver = _gpu()
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    machine = {"gpu": gpu, "driver": driver, "cpu": _cpu(), "cores": os.cpu_count()}
    return machine | {"load average": round(os.getloadavg()[0], 2), "versions": versions}


def _gpu():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None, None
    if answer.returncode or "," not in answer.stdout:
        return None, None
    return tuple(part.strip() for part in answer.stdout.splitlines()[0].split(",", 1))


def _cpu():
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
