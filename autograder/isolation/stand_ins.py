"""What a notebook's cell may call and what does nothing while it is graded.

A submission is judged from outside: its own `check(...)` shows nothing, and costs nothing.
"""

from typing import Any

__all__ = ["check", "display", "doctor", "get_ipython", "hint", "progress", "ready"]


class Silence:
    """Takes any call and any attribute, and answers with itself."""

    def __call__(self, *_arguments: Any, **_keywords: Any) -> "Silence":
        return self

    def __getattr__(self, name: str) -> "Silence":
        if name.startswith("__"):  # copy, pickle and NumPy ask for what is not there
            raise AttributeError(name)
        return self

    def __repr__(self) -> str:
        return "(nothing is shown while grading)"


check = display = doctor = get_ipython = hint = progress = ready = Silence()
