"""Including code in a lesson: the algorithm stands once, in the room where it is tested.

    from reference_numpy.flash1_forward import flash1_forward  # include
    # include cupy_kernels/flash1_forward.cu as FLASH1_FORWARD

The first line is replaced by the source text of the function, the second by a Python string
that holds the whole CUDA file. Marker comments inside come along.
"""

import ast
import re
from dataclasses import replace
from pathlib import Path

from lessons.source import Cell, Line, parse_python, read_lines

_PYTHON = re.compile(r"(?P<statement>from .+?)\s+# include")
_CUDA = re.compile(r"# include (?P<file>\w+(?:/\w+)*\.cuh?) as (?P<name>[A-Za-z_]\w*)")
_ATTEMPT = re.compile(r"#\s*include\b")


def expand_includes(cell: Cell, root: Path) -> Cell:
    """`cell` with each include line replaced by the code it names; `root` is the course's folder.

    Raises LessonError for a module, a name or a file that is not there, and for a line that
    looks like an include but is none.
    """
    lines: list[Line] = []
    for line in cell.lines:
        if python := _PYTHON.fullmatch(line.text):
            lines += _apart(lines) + _python_source(cell, line, python["statement"], root)
        elif cuda := _CUDA.fullmatch(line.text):
            lines += _cuda_source(cell, line, cuda["file"], cuda["name"], root)
        elif _ATTEMPT.search(line.text):
            cell.fault(
                line,
                "cannot read this include; write `from package.module import name  # include` "
                "or `# include folder/file.cu as NAME`",
            )
        else:
            lines.append(line)
    return replace(cell, lines=tuple(lines))


def _apart(lines: list[Line]) -> list[Line]:
    """The two blank lines between one function and the next."""
    follows_code = bool(lines) and lines[-1].text[:1].isspace()
    return [replace(lines[-1], text="")] * 2 if follows_code else []


def _python_source(cell: Cell, line: Line, statement: str, root: Path) -> list[Line]:
    module, names = _imported(cell, line, statement)
    file = module.replace(".", "/") + ".py"
    if not (root / file).is_file():
        cell.fault(line, f"there is no {file} to include from")
    source = read_lines(root / file, file)
    tree = parse_python(cell, source)
    lines: list[Line] = []
    for name in names:
        definition = _definition(tree, source, name)
        if not definition:
            cell.fault(line, f"{file} defines no {name} at its top level")
        lines += _apart(lines) + definition
    return lines


def _imported(cell: Cell, line: Line, statement: str) -> tuple[str, list[str]]:
    """The module and the names of `from module import name, ...`."""
    try:
        node = ast.parse(statement).body[0]
    except SyntaxError:
        cell.fault(line, f"not an import: {statement}")
    if not isinstance(node, ast.ImportFrom) or node.level or any(n.asname for n in node.names):
        cell.fault(line, "an include is `from package.module import name`, without `as`")
    return node.module, [name.name for name in node.names]


def _definition(tree: ast.Module, source: list[Line], name: str) -> list[Line]:
    """The lines of the function or class `name`, comments after its last statement included."""
    for node in tree.body:
        if getattr(node, "name", None) == name:
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            stop = node.end_lineno
            while stop < len(source) and source[stop].text[:1] in ("", " "):
                stop += 1
            while not source[stop - 1].text:
                stop -= 1
            return source[start:stop]
    return []


def _cuda_source(cell: Cell, line: Line, file: str, name: str, root: Path) -> list[Line]:
    """`name = r\"\"\"...\"\"\"`, its first line the file's, so that line numbers agree."""
    if not (root / file).is_file():
        cell.fault(line, f"there is no {file} to include")
    source = read_lines(root / file, file)
    if not any(inside.text for inside in source):
        cell.fault(line, f"{file} is empty")
    for inside in source:
        if '"""' in inside.text:
            cell.fault(inside, "three double quotes would end the Python string around this file")
    first = replace(source[0], text=f'{name} = r"""{source[0].text}')
    return [first, *source[1:], replace(source[-1], text='"""')]
