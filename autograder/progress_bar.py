"""A progress bar for work that takes more than two seconds, where somebody is looking."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show how much of `total` is done; call what is yielded after each piece.

    Drawn on stderr, only if that is a terminal, and only once PATIENCE has passed.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(
        console=Console(file=sys.stderr), transient=True, redirect_stdout=sys.stdout.isatty()
    )
    task = bar.add_task(what, total=total)
    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda: bar.advance(task)
    finally:
        timer.cancel()
        bar.stop()
