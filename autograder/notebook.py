"""What a student calls in a notebook: check, ready, hint, progress."""

from typing import Any

from autograder.cuda_kernel import CudaKernel
from autograder.exercise import Exercise, all_exercises, get_exercise
from autograder.grading import grade_function
from autograder.progress_file import ProgressFile
from autograder.progress_table import Progress
from autograder.report import Report
from autograder.result import Outcome

_passed: dict[str, Any] = {}  # what passed in this session, by exercise


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


def ready(exercise_id: str) -> Any:
    """Your own answer if it passed in this session, else the course's, and says so.

    Later cells build on it, so a notebook runs to its end whatever is still unwritten.
    Raises LookupError where the course's answer is not installed.
    """
    exercise = get_exercise(exercise_id)
    if exercise_id in _passed:
        return _passed[exercise_id]
    try:
        answer = exercise.shipped_answer()
    except (ImportError, AttributeError):
        raise LookupError(
            f"{exercise_id} has not passed in this session, and this copy of the course has no "
            f"answers: write it and run check({exercise_id}) first"
        ) from None
    solved = ProgressFile().entry(exercise_id).outcome == Outcome.PASS
    why = "is not in this notebook's memory" if solved else "has not passed yet"
    print(f"— {exercise_id} {why}: this cell uses the course's own. —")
    return answer


def hint(function_or_id: Any) -> "Hint":
    """One more hint for an exercise, given by its id or your function, below those you have."""
    named = function_or_id if isinstance(function_or_id, str) else None
    exercise = _exercise_of(function_or_id, named)
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


def _exercise_of(function_or_value: Any, exercise_id: str | None) -> Exercise:
    if exercise_id is None and isinstance(function_or_value, str):
        raise KeyError(
            f"write check({function_or_value}), without quotes: the answer, not its name"
        )
    name = exercise_id or getattr(function_or_value, "__name__", None)
    if name is None and isinstance(function_or_value, CudaKernel):
        name = _asked_for(function_or_value)
    if name is None:
        raise KeyError('a value has no name: say which exercise it answers, check(value, "id")')
    return get_exercise(name)


def _asked_for(kernel: CudaKernel) -> str | None:
    """The one exercise that asks for a kernel of this name; None if there is no such one."""
    try:
        name = kernel.name
    except ValueError:
        return None
    found = [exercise.id for exercise in all_exercises().values() if exercise.kernel == name]
    return found[0] if len(found) == 1 else None
