"""The child process that ncu profiles: launches a recording again, and nothing else.

`python -m cupy_kernels.ncu_replay FILE`; started by `ncu.replay`, which wrote FILE.
"""

import pickle
import sys
from pathlib import Path


def main(recording: str) -> None:
    """Launch each recorded kernel once, with the profiler on for the launch alone."""
    from cupyx.profiler import profile

    from cupy_kernels.raw_kernel import RawKernel

    for launch in pickle.loads(Path(recording).read_bytes()):
        kernel = RawKernel.of(launch.source, launch.kernel, device="gpu")
        kernel.max_dynamic_shared_size_bytes = launch.allowed_shared
        with profile():
            kernel(launch.grid, launch.block, launch.args, shared_mem=launch.shared_mem)


if __name__ == "__main__":
    main(sys.argv[1])
