"""How much one exercise of a submission may use."""

import ctypes
import resource
import signal
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits for one exercise of one submission.

    Attributes:
        seconds: wall time the student's code may take in all, cells included.
        memory: address space of the child, in bytes.
        output: bytes of stdout and stderr kept, and the size of any file it writes.
        start_seconds: wall time for Python and NumPy to start, which is nobody's fault.
    """

    seconds: float = 60.0
    memory: int = 2 << 30
    output: int = 8 << 20
    start_seconds: float = 30.0

    def apply(self, processes: int) -> None:
        """Put the limits on this process and all it starts, `processes` at most, for good."""
        cpu = int(self.seconds + self.start_seconds) + 1  # only matters if the judge dies
        _at_most(resource.RLIMIT_CPU, cpu)
        _at_most(resource.RLIMIT_FSIZE, self.output)
        _at_most(resource.RLIMIT_CORE, 0)
        _at_most(resource.RLIMIT_NOFILE, 64)
        _at_most(resource.RLIMIT_NPROC, processes)  # threads count; not enforced for root
        if sys.platform == "linux":
            _at_most(resource.RLIMIT_AS, self.memory)
            _tie_to_the_judge()


def _at_most(what: int, value: int) -> None:
    _soft, hard = resource.getrlimit(what)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))


def _tie_to_the_judge() -> None:
    """Die with the judge, and inherit the orphans, so that a daemon stays in our family tree."""
    PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
