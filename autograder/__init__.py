"""Exactness and HBM traffic, judged: in the notebook by `check`, for a submission by `grade`.

from autograder import check, doctor, hint, progress, ready
"""

from importlib import import_module

_HOMES = {
    "CudaKernel": "autograder.cuda_kernel",
    "check": "autograder.notebook",
    "hint": "autograder.notebook",
    "progress": "autograder.notebook",
    "ready": "autograder.notebook",
    "doctor": "autograder.doctor_report",
    "grade_function": "autograder.grading",
    "grade_notebook": "autograder.grading",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    # Loaded when first asked for, so that importing the package costs nothing.
    if name not in _HOMES:
        raise AttributeError(f"module 'autograder' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
