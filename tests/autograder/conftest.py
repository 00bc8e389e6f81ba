import json

import pytest

from tests.autograder.fake_exercises import FAKES

DOUBLE = """\
def double(machine, X, Y, *, B):
    for rows in tiles(X.shape[0], B):
        Y[rows] = 2 * X[rows]
"""
TOTAL = "def total(x):\n    return float(np.sum(x))\n"


@pytest.fixture
def fake_exercises(monkeypatch):
    """The course has three small exercises."""
    monkeypatch.setattr("autograder.exercise.all_exercises", lambda: FAKES)


def code_cell(source, exercise=None, tags=()):
    metadata = {"tags": list(tags)} if tags else {}
    if exercise:
        metadata["exercise"] = exercise
    return {
        "cell_type": "code",
        "id": "cell",
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def notebook_text(cells, lesson=90):
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    metadata = {"course": {"lesson": lesson}} if lesson is not None else {}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook)


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook of the given cells and return its path."""

    def write(*cells, lesson=90, name="90_small.ipynb"):
        path = tmp_path / name
        path.write_text(notebook_text(list(cells), lesson))
        return path

    return write
