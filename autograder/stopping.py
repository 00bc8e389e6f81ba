"""Being stopped from outside, by Ctrl-C, `kill` or a terminal that is closed."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class Stopped(BaseException):
    """A signal asked the process to end; what was started is cleared away on the way out."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def stoppable() -> Iterator[None]:
    """Within, the first signal to end raises Stopped.

    The signals that follow are ignored, so that nothing interrupts the clearing away. One that
    was ignored before (`nohup`) stays so.
    """
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    handlers = {number: signal.getsignal(number) for number in numbers}
    # None is a handler that Python could not put back.
    before = {n: h for n, h in handlers.items() if h not in (signal.SIG_IGN, None)}
    asked = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise Stopped(number)

    try:
        for number in before:
            signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
