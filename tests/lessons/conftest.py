"""A course of one small lesson, copied so that a test may change what it likes."""

import shutil
from pathlib import Path

import pytest

from lessons import build

SAMPLE = Path(__file__).parent / "data" / "course"
SAMPLE_EXERCISES = ("running_sum", "add_kernel", "mean")


class Course:
    """The sample course in a folder of its own, with the commands that work on it."""

    def __init__(self, root: Path):
        self.root = root
        self.source = root / "solutions" / "07_running_sum.py"
        self.student = root / "lessons" / "07_running_sum.ipynb"
        self.solved = root / "solutions" / "07_running_sum.ipynb"
        self.reference = root / "reference_numpy" / "running_sum.py"
        self.cuda = root / "cupy_kernels" / "add.cu"

    def run(self, *arguments: str, known=SAMPLE_EXERCISES) -> int:
        """`python -m lessons.build *arguments`; returns the exit status."""
        return build.main(arguments, root=self.root, known_exercises=lambda: known)

    def replace(self, old: str, new: str, file: Path | None = None) -> None:
        """Change `old`, which must be there, to `new` in the source or in `file`."""
        file = file or self.source
        text = file.read_text()
        assert old in text, f"{file.name} does not contain {old!r}"
        file.write_text(text.replace(old, new, 1))


@pytest.fixture
def course(tmp_path) -> Course:
    """The sample course, not built yet."""
    shutil.copytree(SAMPLE, tmp_path / "course")
    return Course(tmp_path / "course")


@pytest.fixture
def built(course) -> Course:
    """The sample course, built."""
    assert course.run() == 0
    return course
