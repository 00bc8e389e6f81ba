"""Work that a signal must not cut short: half cleared away is not cleared away."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Within, signals to end wait; afterwards each that came does what it would have done.

    Python handles signals in its main thread only; in any other there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    # One that is ignored stays so; None is a handler that Python could not put back.
    held = {n: h for n, h in handlers.items() if h not in (signal.SIG_IGN, None)}
    try:
        for number in held:
            signal.signal(number, lambda number, _frame: came.append(number))
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)
