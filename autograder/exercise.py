"""What an exercise is: its name, its points, its hints, and the examination it has to pass."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any

from autograder.candidate import Candidate
from autograder.result import Finding, Points, TrafficFinding

LESSON_FILES = (
    "lesson_00_the_machine",
    "lesson_01_three_kernels",
    "lesson_02_online_softmax",
    "lesson_03_flash1_forward",
    "lesson_04_flash_backward",
    "lesson_05_flash2_forward",
    "lesson_06_first_cuda_kernels",
)


class Tier(StrEnum):
    """How much is tried: `quick` in the notebook, `full` when a submission is graded."""

    QUICK = "quick"
    FULL = "full"


Evidence = Finding | TrafficFinding
Examination = Callable[[Candidate, Tier, int], Iterator[Evidence]]


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        id: the name of the student's function, or of the value handed to `check(value, id)`.
        lesson: number of the lesson it belongs to.
        title: one line for lists and reports.
        signature: how the function is called, as text.
        answer: where the shipped answer lives, "package.module:name".
        examine: `examine(candidate, tier, seed)` yields findings in the order they are tried.
        hints: given out one at a time, from a nudge to nearly the answer.
        is_value: True when the student hands in a value rather than a function.
        kernel: name of the CUDA kernel that is asked for; "" where none is.
    """

    id: str
    lesson: int
    title: str
    signature: str
    answer: str
    examine: Examination
    hints: tuple[str, ...]
    points: Points = Points()
    is_value: bool = False
    kernel: str = ""

    def shipped_answer(self) -> Any:
        """The course's own function or value for this exercise."""
        module, name = self.answer.split(":")
        return getattr(import_module(module), name)


@cache
def all_exercises() -> dict[str, Exercise]:
    """Every exercise of the course by id, in lesson order."""
    found = {}
    for name in LESSON_FILES:
        for exercise in import_module(f"autograder.exercises.{name}").EXERCISES:
            found[exercise.id] = exercise
    return found


def get_exercise(exercise_id: str) -> Exercise:
    """The exercise called `exercise_id`. Raises KeyError that names those there are."""
    exercises = all_exercises()
    if exercise_id not in exercises:
        raise KeyError(f"no exercise is called {exercise_id!r}; there are: {', '.join(exercises)}")
    return exercises[exercise_id]
