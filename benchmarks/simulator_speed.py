"""How long the simulator takes, all checks on: the bars that a lesson's patience sets.

Warm is the median of launches in one process after a first one; cold is the first launch of a fresh
process, imports and NVRTC's own time left out (the PTX comes from the compiler's cache). CPU time
is recorded beside the time on the clock, which other work on the machine stretches.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from cupy_kernels import RawKernel, forward

from .results_file import row

KERNELS = Path(__file__).parents[1] / "tests" / "cupy_kernels" / "bugs" / "kernels"
d, REPEATS = 64, 5


def naive_forward(N):
    """The three kernels with S and P in HBM, float32, one head."""
    q, k, v = _inputs(N, np.float32)
    return lambda: forward(q, k, v, kernel="naive_forward", device="sim")


def flash1(N):
    """FlashAttention-1's loops in float32, shared-memory tiles and shuffles, one block."""
    q, k, v = _inputs(N, np.float32)
    o, (l, m) = np.zeros_like(q), np.zeros((2, N), np.float32)
    arguments = (q, k, v, o, l, m, np.int32(N), np.float32(d**-0.5))
    return _launch("flash1", (1,), arguments)


def flash2(N):
    """FlashAttention-2's forward: mma.sync, ldmatrix and cp.async, halves."""
    q, k, v = _inputs(N, np.float16)
    o, lse = np.zeros_like(q), np.zeros(N, np.float32)
    arguments = (q, k, v, o, lse, np.int32(N), np.float32(d**-0.5))
    return _launch("flash2", (-(-N // 64), 1), arguments)


# What runs, at which N, in which precision, and the seconds it may take.
CASES = {
    "naive_forward": (naive_forward, 512, "float32", 1.0),
    "flash1": (flash1, 256, "float32", 1.2),
    "flash2": (flash2, 1024, "float16", 0.3),
}


def _inputs(N, dtype):
    rng = np.random.default_rng(0)
    return (rng.standard_normal((1, 1, N, d)).astype(dtype) for _ in range(3))


def _launch(name, grid, arguments):
    path = KERNELS / f"{name}.cu"
    kernel = RawKernel(path.read_text(), name, device="sim", filename=path.name)
    return lambda: kernel(grid, (128,), arguments)


def run() -> list[dict]:
    """Rows of the suite "simulator": seconds, cold and warm, beside the bar."""
    rows = []
    for name, (_, N, dtype, bar) in CASES.items():
        answers = [_fresh_process(name) for _ in range(REPEATS)]
        launches = {
            "cold": [a["cold"] for a in answers],
            "warm": [launch for a in answers for launch in a["warm"]],
        }
        times = {}
        for state, pairs in launches.items():
            times[f"{state} time"], times[f"{state} CPU time"] = zip(*pairs, strict=True)
        for metric, seconds in times.items():
            median = statistics.median(seconds)
            rows.append(
                row(
                    "simulator",
                    name,
                    metric,
                    round(median, 4),
                    "s",
                    dtype=dtype,
                    d=d,
                    N=N,
                    causal=False,
                    device="simulator, one core",
                    spread=[round(min(seconds), 4), round(max(seconds), 4)],
                    peer="bar",
                    peer_value=bar,
                    ratio=round(bar / median, 2),
                )
            )
            print(f"{name:14} N={N:<5} {metric}: {median:.3f} s (bar {bar} s)", file=sys.stderr)
    return rows


def _fresh_process(name):
    command = [sys.executable, "-m", "benchmarks.simulator_speed", name]
    one_core = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600, env=one_core)
    if answer.returncode:
        raise RuntimeError(f"simulator_speed {name} failed:\n{answer.stderr[-2000:]}")
    return json.loads(answer.stdout.splitlines()[-1])


def _timed(launch):
    """Seconds on the clock and of the CPU."""
    start, start_cpu = time.perf_counter(), time.process_time()
    launch()
    return time.perf_counter() - start, time.process_time() - start_cpu


def main() -> None:
    """Time one case in this process; prints one JSON line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("case", choices=CASES)
    make, N, _, _ = CASES[parser.parse_args().case]
    make(64)()  # imports, and NVRTC into its cache
    launch = make(N)
    print(json.dumps({"cold": _timed(launch), "warm": [_timed(launch) for _ in range(REPEATS)]}))


if __name__ == "__main__":
    main()
