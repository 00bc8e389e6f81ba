"""A mutant is the shipped answer with one change in its text.

Textual changes keep a mutant next to the code it spoils: when the reference is rewritten and a
change no longer applies, building the mutant fails and says so.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from autograder.cuda_kernel import CudaKernel
from autograder.exercise import get_exercise


def rewritten(exercise_id: str, changes: dict[str, str]) -> Callable | CudaKernel:
    """The shipped answer of an exercise with each text on the left replaced by the right.

    Every text must occur exactly once. Raises ValueError otherwise.
    """
    exercise = get_exercise(exercise_id)
    if exercise.kernel:
        return rewritten_kernel(exercise.shipped_answer(), changes)
    module_name, function_name = exercise.answer.split(":")
    source = inspect.getsource(import_module(module_name))
    for old, new in changes.items():
        if source.count(old) != 1:
            raise ValueError(f"{module_name} holds {source.count(old)} times, not once: {old}")
        source = source.replace(old, new)
    namespace: dict = {"__name__": f"rewritten_{function_name}"}
    exec(compile(source, f"<{module_name}, rewritten>", "exec"), namespace)
    return namespace[function_name]


def rewritten_kernel(kernel: CudaKernel, changes: dict[str, str]) -> CudaKernel:
    """The kernel with each text replaced, in its source or in its launch, where it occurs once."""
    texts = kernel.as_dict()
    for old, new in changes.items():
        places = [name for name, text in texts.items() for _ in range(text.count(old))]
        if len(places) != 1:
            raise ValueError(f"{kernel.name} holds {len(places)} times, not once: {old}")
        texts[places[0]] = texts[places[0]].replace(old, new)
    return CudaKernel(**texts)


@dataclass(frozen=True)
class Mutant:
    """One wrong version of an exercise and what has to give it away.

    Attributes:
        name: what is wrong with it.
        exercise: the exercise it pretends to solve.
        changes: old text → new text in the reference's module, or in the kernel and its launch.
        fixture: a fixture on which it must fail.
        array: for a traffic mutant, the array whose bytes are wrong; "" for a wrong result.
        cause: words the report must contain about the likely cause; "" where none is named.
    """

    name: str
    exercise: str
    changes: dict[str, str]
    fixture: str
    array: str = ""
    cause: str = ""

    def __str__(self) -> str:
        return f"{self.exercise}-{self.name}"

    def build(self) -> Callable | CudaKernel:
        """The wrong function or kernel."""
        return rewritten(self.exercise, self.changes)
