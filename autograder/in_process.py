"""The candidate of the notebook: the student's function, called where it stands."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from autograder.candidate import NotWritten, StudentFault
from autograder.faults import describe, is_students
from autograder.values import NotPlain, plain
from reference_numpy.machine import HbmArray, InHbm, Machine


class InProcess:
    """A student's function (or value) in this very process.

    Convenient, not safe: an endless loop is ended by the notebook's stop button. A submission
    is graded in a process of its own (`autograder.isolation`).
    """

    def __init__(self, function_or_value: Any):
        self._target = function_or_value
        is_function = isinstance(function_or_value, FunctionType)
        self._file = function_or_value.__code__.co_filename if is_function else None

    def on_machine(
        self, machine: Machine, arrays: Sequence[HbmArray], keywords: dict[str, Any]
    ) -> None:
        """Run `f(machine, *arrays, **keywords)`. Raises NotWritten or StudentFault."""
        with tiles_only(machine), self._blaming_the_student():
            self._target(machine, *arrays, **plain(keywords))

    def call(self, *arguments: Any, **keywords: Any) -> Any:
        """Return `f(*arguments, **keywords)`, or the value itself; both sides get copies.

        Raises NotWritten or StudentFault.
        """
        if not callable(self._target):
            return self._handed_in()
        arguments, keywords = plain(arguments), plain(keywords)
        with self._blaming_the_student():
            value = self._target(*arguments, **keywords)
        return self._returned(value)

    def _handed_in(self) -> Any:
        if self._target is None or self._target is Ellipsis:
            raise NotWritten
        return self._returned(self._target)

    def _returned(self, value: Any) -> Any:
        try:
            return plain(value)
        except NotPlain as error:
            raise StudentFault(f"your function returned {error}") from None

    @contextmanager
    def _blaming_the_student(self) -> Iterator[None]:
        try:
            yield
        except NotImplementedError:
            raise NotWritten from None
        except KeyboardInterrupt:  # the notebook's stop button
            raise
        except BaseException as error:
            raise StudentFault(describe(error, self._is_students)) from None

    def _is_students(self, filename: str) -> bool:
        return filename == self._file or is_students(filename)


@contextmanager
def tiles_only(machine: Machine) -> Iterator[None]:
    """While a kernel runs, HBM is reached tile by tile: the host's door to it is shut.

    When a submission is graded there is no such door, so the notebook must not be more generous.
    """
    machine.to_host = shut
    try:
        yield
    finally:
        del machine.to_host


def shut(name: str) -> None:
    """Stands in for `machine.to_host` while a kernel runs."""
    raise InHbm(f"a kernel cannot copy {name} to the host: load a tile, {name}[i:j]")
