"""A code cell must be Python, in the solved copy and in the student's."""

import ast

from lessons.markers import solution_blocks
from lessons.source import Cell, Line, parse_python


def refuse_bad_python(cell: Cell, student: str) -> None:
    """Raise LessonError unless `cell` and `student`, its text in the student's copy, are Python.

    Markers of the other language are an error, too: `###` inside a string would give a stub that
    never raises, and `//` outside of one is no Python.
    """
    tree = parse_python(cell, cell.lines)
    inside = _lines_inside_strings(tree)
    for block in solution_blocks(cell):
        if block.comment == "###" and block.begin + 1 in inside:
            cell.fault(
                cell.lines[block.begin],
                "the block stands inside a string, where its stub would not raise",
            )
    copy = [Line(text, cell.marker.file, cell.marker.number) for text in student.split("\n")]
    parse_python(cell, copy, "the student's copy is not Python")


def _lines_inside_strings(tree: ast.Module) -> set[int]:
    """Numbers, from 1, of the lines that begin inside a string."""
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr)]
    return {n for node in strings for n in range(node.lineno + 1, node.end_lineno + 1)}
