"""What a student calls in a notebook: check, ready, hint, progress."""

from typing import Any

from autograder import exercise as catalogue
from autograder.cuda_kernel import CudaKernel
from autograder.exercise import Exercise, get_exercise
from autograder.grading import grade_function
from autograder.progress_file import ProgressFile
from autograder.progress_table import Progress
from autograder.report import Report
from autograder.result import Outcome

_passed: dict[str, Any] = {}  # what passed since the notebook was started, by exercise


def check(function_or_value: Any, exercise_id: str | None = None) -> Report:
    """Examine your answer and report: PASS, FAIL and what is wrong, or NOT WRITTEN.

    Args:
        function_or_value: your function, or the value that is asked for.
        exercise_id: the exercise; not needed for a function that has its name, nor for a
            CudaKernel whose kernel only one exercise asks for.

    Raises KeyError, naming the exercises there are, for an id that is none of them.
    """
    exercise = _exercise_of(function_or_value, exercise_id)
    result = grade_function(function_or_value, exercise.id)
    if result.outcome is Outcome.PASS:
        _passed[exercise.id] = function_or_value
    else:
        _passed.pop(exercise.id, None)
    ProgressFile().record(result)
    return Report(result)


def ready(function_or_id: Any) -> Any:
    """Your own answer if it passed since the notebook was started, else the course's.

    The exercise is given by its id or your function. Later cells build on the answer, so a
    notebook runs to its end whatever is still unwritten.
    Raises LookupError where the course's answer is not installed.
    """
    exercise = _exercise_named(function_or_id)
    if exercise.id in _passed:
        return _passed[exercise.id]
    try:
        answer = exercise.shipped_answer()
    except (ImportError, AttributeError):
        raise LookupError(
            f"{exercise.id} has not passed since the notebook was started, and this copy of the "
            f"course has no answers: write it and run check({exercise.id}) first"
        ) from None
    solved = ProgressFile().entry(exercise.id).outcome == Outcome.PASS
    why = "is not in this notebook's memory" if solved else "has not passed yet"
    print(f"— {exercise.id} {why}: this cell uses the course's own. —")
    return answer


def hint(function_or_id: Any) -> "Hint":
    """One more hint for an exercise, given by its id or your function, below those you have."""
    exercise = _exercise_named(function_or_id)
    if not exercise.hints:
        return Hint(f"{exercise.id} has no hints: its text says all there is to know.")
    progress = ProgressFile()
    given = progress.entry(exercise.id).hints
    if given < len(exercise.hints):
        progress.count_hint(exercise.id)
    number = min(given + 1, len(exercise.hints))
    left = len(exercise.hints) - number
    read = [f"Hint {i}: {text}" for i, text in enumerate(exercise.hints[:number], start=1)]
    return Hint("\n".join([*read, f"({left} more)" if left else "(that was the last)"]))


class Hint(str):
    """A hint; at the prompt it shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


def progress() -> Progress:
    """Every exercise with its latest verdict, from the notebooks of this folder."""
    return Progress.of()


def _exercise_named(function_or_id: Any) -> Exercise:
    named = function_or_id if isinstance(function_or_id, str) else None
    return _exercise_of(function_or_id, named)


def _exercise_of(function_or_value: Any, exercise_id: Any) -> Exercise:
    if exercise_id is None and isinstance(function_or_value, str):
        raise KeyError(
            f"write check({function_or_value}), without quotes: the answer, not its name"
        )
    name = _name_of(function_or_value) if exercise_id is None else exercise_id
    if name is None:
        kind = type(function_or_value).__name__
        example = next(iter(catalogue.all_exercises()))
        raise KeyError(
            f'this {kind} has no name: say which exercise it answers by its id, such as "{example}"'
        )
    if not isinstance(name, str):
        raise KeyError(f"an exercise's id is text in quotes, not a {type(name).__name__}")
    return get_exercise(name)


def _name_of(answer: Any) -> str | None:
    if isinstance(answer, CudaKernel):
        return _asked_for(answer)
    try:
        name = getattr(answer, "__name__", None)
    except Exception:  # a student's __getattr__ may do anything
        return None
    return name if isinstance(name, str) else None


def _asked_for(kernel: CudaKernel) -> str | None:
    """The one exercise that asks for a kernel of this name; None if there is no such one."""
    try:
        name = kernel.name
    except ValueError:
        return None
    found = [
        exercise.id for exercise in catalogue.all_exercises().values() if exercise.kernel == name
    ]
    return found[0] if len(found) == 1 else None
