"""Standard streams that a command can rely on, whatever it was started with."""

import io
import os
import sys
from contextlib import suppress


def prepare_streams() -> None:
    """Open what was closed, and let every character through.

    A stream that was closed leads nowhere; were it left so, the next file that is opened would
    take its place. A character that the encoding lacks is written as an escape.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Let what is still to be written to stdout go nowhere: Python tries again when it exits."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
