"""Running a notebook from top to bottom and reading what its check cells say."""

import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient

VERDICT = re.compile(r"PASS|FAIL|NOT WRITTEN")


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


def verdicts(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """The verdict that each check cell shows, by cell id.

    Raises AssertionError for a notebook without check cells and for one that shows no verdict:
    such a notebook would pass without having been looked at.
    """
    checks = [cell for cell in notebook.cells if "check" in cell.metadata.get("tags", [])]
    assert checks, "no cell is tagged `check`, so nothing was checked"
    return {cell.id: _verdict(cell) for cell in checks}


def _verdict(cell: nbformat.NotebookNode) -> str:
    shown = [output.data["text/plain"] for output in cell.outputs if "data" in output]
    verdict = VERDICT.match(shown[-1]) if shown else None
    assert verdict, f"check cell {cell.id!r} shows no verdict: {shown or cell.source!r}"
    return verdict[0]
