"""Running a notebook from top to bottom and reading what its check cells say."""

import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient

VERDICT = re.compile(r"(PASS|FAIL|NOT WRITTEN)  (\w+)")


def run_notebook(path: Path, folder: Path, seconds: int = 60) -> nbformat.NotebookNode:
    """Run every cell with `folder` as the current folder; `seconds` is the limit for one cell.

    Raises nbclient's CellExecutionError for a cell that raises, TimeoutError for a slow one.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=seconds,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return notebook


def exercises(notebook: nbformat.NotebookNode) -> list[str]:
    """The ids of the notebook's exercises, in order."""
    return [cell.metadata.exercise for cell in notebook.cells if "exercise" in cell.metadata]


def verdicts(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """(exercise, verdict) as each check cell shows it, in order.

    Raises AssertionError for a notebook without check cells and for one that shows no verdict:
    such a notebook would pass without having been looked at.
    """
    checks = [cell for cell in notebook.cells if "check" in cell.metadata.get("tags", [])]
    assert checks, "no cell is tagged `check`, so nothing was checked"
    return [_verdict(cell) for cell in checks]


def _verdict(cell: nbformat.NotebookNode) -> tuple[str, str]:
    shown = [output.data["text/plain"] for output in cell.outputs if "data" in output]
    report = VERDICT.match(shown[-1]) if shown else None
    assert report, f"check cell {cell.id!r} shows no verdict: {shown or cell.source!r}"
    return report[2], report[1]
