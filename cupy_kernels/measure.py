"""`with measure() as traffic:` counts what the launches inside move.

In the simulator each launch is counted as it runs. On a GPU each launch is recorded with copies of
its arguments, and at the end a child process replays the recording under Nsight Compute.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cupy_kernels import device, ncu
from cupy_kernels.kernel_source import KernelSource
from cupy_kernels.launch_checks import Bound, is_array
from cupy_kernels.notices import say_once
from cupy_kernels.traffic import Traffic

_active: ContextVar[tuple["_Recording", ...]] = ContextVar("active measurements", default=())


@contextmanager
def measure() -> Iterator[Traffic]:
    """Count the launches inside the block; the `Traffic` is complete once the block has ended.

    Blocks may nest: each counts all that runs inside it. Where a GPU's counters are refused,
    `traffic.not_measured` gives the reason, which is also said once on stderr.
    """
    recording = _Recording()
    token = _active.set((*_active.get(), recording))
    try:
        yield recording.traffic
    finally:
        _active.reset(token)
    recording.replay()


def record_simulated_launch(source: KernelSource, name: str, bound: Bound, counts) -> None:
    """Give the simulator's counts of one launch to the measurements under way."""
    for recording in _active.get():
        entry = recording.traffic.kernel(name, source.filename, source.code, "sim")
        entry.add_simulated(_pointer_names(bound), counts)


def record_gpu_launch(
    source: KernelSource, name: str, grid, block, bound: Bound, shared_mem: int, allowed: int
) -> None:
    """Keep one GPU launch, arguments copied as they are before it, for the replay."""
    if not _active.get():
        return
    args = _host_copies([arg for _, arg in bound])
    launch = ncu.RecordedLaunch(source, name, grid, block, args, shared_mem, allowed)
    for recording in _active.get():
        recording.launches.append((launch, _pointer_names(bound)))


class _Recording:
    def __init__(self):
        self.traffic = Traffic()
        self.launches = []

    def replay(self):
        """Have ncu count the recorded launches; without counters they stay "not measured"."""
        if not self.launches:
            return
        counters = [{}] * len(self.launches)
        try:
            counters = ncu.replay([launch for launch, _ in self.launches])
        except ncu.CountersRefused as refusal:
            self.traffic.not_measured = str(refusal)
            say_once(f"GPU counters not measured: {refusal}")
        for (launch, arrays), row in zip(self.launches, counters, strict=True):
            source = launch.source
            entry = self.traffic.kernel(launch.kernel, source.filename, source.code, "gpu")
            entry.add_gpu(arrays, row)


def _pointer_names(bound):
    return [parameter.name for parameter, _ in bound if parameter.is_pointer]


def _host_copies(args):
    """Copies in host memory; an array that is passed twice stays one array."""
    copies = {}
    for arg in args:
        if is_array(arg) and id(arg) not in copies:
            on_host = device.move(arg, "sim")
            copies[id(arg)] = on_host.copy() if on_host is arg else on_host
    return tuple(copies.get(id(arg), arg) for arg in args)
