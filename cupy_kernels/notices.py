"""What is said the same way everywhere: a notice once a process, and a figure that is missing."""

import functools
import sys

NOT_MEASURED = "not measured"


@functools.cache
def say_once(text: str) -> None:
    """Print a notice on stderr, the first time only."""
    print(text, file=sys.stderr)
