"""The student's function, seen from the judge: something that can be called and can go wrong.

Two candidates exist. In the notebook the function is called where it is (`InProcess`). When a
submission is graded it runs in a process of its own (`autograder.isolation`), which never sees
the oracle, the expected values or the HBM arrays. The examinations cannot tell them apart.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from reference_numpy.machine import HbmArray, Machine


class NotWritten(Exception):
    """The exercise still raises NotImplementedError."""


class StudentFault(Exception):
    """The student's code went wrong: the message says how, in one or two lines.

    `fatal` faults (time limit, killed process) end the exercise; others only this attempt.
    """

    def __init__(self, message: str, *, fatal: bool = False):
        super().__init__(message)
        self.fatal = fatal


class Candidate(Protocol):
    """A student's function that the judge may call."""

    def on_machine(
        self, machine: Machine, arrays: Sequence[HbmArray], keywords: dict[str, Any]
    ) -> None:
        """Run `f(machine, *arrays, **keywords)`; its effects are in the machine afterwards.

        Raises NotWritten or StudentFault.
        """

    def call(self, *arguments: Any, **keywords: Any) -> Any:
        """Return `f(*arguments, **keywords)`: numbers, booleans, strings, None, arrays, and
        lists, tuples and dicts of these.

        Raises NotWritten or StudentFault.
        """
