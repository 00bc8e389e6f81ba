"""The source of one notebook cell: plain Python, what it defines, or why it cannot be read."""

import ast
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache

SOURCE_LIMIT = 200_000  # characters in a cell
MENDED_LINES = 20  # a cell is parsed again after each
_MAGIC = re.compile(r"([ \t]*)[%!].*")
_NOT_PYTHON = re.compile(r"\s*%%(?!(time|timeit|capture|prun)\b)")
_LOOKS_LIKE_MAGIC = re.compile(r"(=\s*[%!])|([\w\])]\?+\s*$)|^\s*[%!?]")
_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
_ARITHMETIC = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Load, ast.Tuple, ast.List),
    *(ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Call, ast.keyword),
)
_NUMBER_MAKERS = ("abs", "float", "int", "max", "min", "round")
_NUMBER_MODULES = ("math", "np")


@dataclass(frozen=True)
class SyntaxFault:
    """Why a cell is no Python: the message, and the line (from 1) with its text if it has one."""

    message: str
    line: int | None = None
    text: str = ""
    is_magic: bool = False

    def of(self, label: str) -> str:
        """The fault in words, for a cell called `label`."""
        where = f" in line {self.line}" if self.line else ""
        hint = " This is notebook magic, not Python: take it out." if self.is_magic else ""
        said = f"syntax error{where} of {label}: {self.message}.{hint}"
        return f"{said}\n    {self.text}" if self.text else said


@dataclass(frozen=True)
class CellSource:
    """What there is to know about a cell.

    Attributes:
        python: its source as plain Python, with its lines where they were.
        functions: the functions at its top level.
        values: the plain names that it assigns to there.
        classes: the classes.
        definitions: imports, functions, classes and constants on lines of their own, and nothing
            else; every line keeps its number.
        fault: why the cell cannot be read, or None.
    """

    python: str
    functions: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    definitions: str = ""
    fault: SyntaxFault | None = None

    @property
    def names(self) -> frozenset[str]:
        """All that the cell defines at its top level."""
        return frozenset((*self.functions, *self.values, *self.classes))


@lru_cache(maxsize=1024)  # each cell is looked at for every exercise of its notebook
def read_source(source: str) -> CellSource:
    """Read a cell's source.

    Lines that start with `%` or `!` speak to the notebook, not to Python, and do nothing here.
    """
    lines = _lines(source)
    try:
        tree = _parsed(lines)
    except SyntaxError as error:
        # The broken cell may still be the one that answers an exercise: go by its text.
        functions = re.findall(r"^def (\w+)", source, re.MULTILINE)
        values = re.findall(r"^(\w+)\s*=(?!=)", source, re.MULTILINE)
        fault = _fault(error, _lines(source))
        return CellSource(source, tuple(functions), tuple(values), fault=fault)
    return CellSource(
        "\n".join(lines),
        tuple(node.name for node in tree.body if isinstance(node, ast.FunctionDef)),
        tuple(name for node in tree.body for name in _targets(node)),
        tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
        _definitions(tree, lines),
    )


def _lines(source: str) -> list[str]:
    """The lines as Python counts them: a form feed, say, ends none."""
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _parsed(lines: list[str]) -> ast.Module:
    """The syntax tree; magic in `lines` is replaced, line by line, as Python stumbles over it.

    A `%` may as well continue the arithmetic of the line before: Python tells them apart.
    """
    if sum(map(len, lines)) > SOURCE_LIMIT:
        raise SyntaxError(f"the cell is longer than {SOURCE_LIMIT:,} characters")
    for _ in range(MENDED_LINES):
        try:
            return _tree("\n".join(lines))
        except SyntaxError as error:
            if not _mend(lines, error):
                raise
    return _tree("\n".join(lines))


def _mend(lines: list[str], error: SyntaxError) -> bool:
    """Replace what stopped Python, if it is none of the student's doing; False if it is."""
    if not error.lineno or error.lineno > len(lines) or _NOT_PYTHON.match(lines[0]):
        return False
    at = error.lineno - 1
    before = lines[at]
    if magic := _MAGIC.fullmatch(before):
        lines[at] = f"{magic[1]}pass"
    elif "U+00A0" in error.msg:  # a space that came along from a web page
        lines[at] = before.replace("\u00a0", " ")
    return lines[at] != before


def _tree(source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(f"Python cannot read it ({error or 'nested too deeply'})") from None


def _fault(error: SyntaxError, lines: list[str]) -> SyntaxFault:
    line = error.lineno if error.lineno and error.lineno <= len(lines) else None
    text = lines[line - 1].strip()[:200] if line else ""
    first = next((line for line in lines if line.strip()), "")
    is_magic = first.lstrip().startswith("%%") or bool(_LOOKS_LIKE_MAGIC.search(text))
    return SyntaxFault(str(error.msg), line, text, is_magic)


def _targets(node: ast.stmt) -> list[str]:
    """The plain names that a statement assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) and node.value else targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _definitions(tree: ast.Module, lines: list[str]) -> str:
    kept = [""] * len(lines)
    for node in tree.body:
        if not isinstance(node, _DEFINITIONS) and not (
            _is_constant(node) and _stands_alone(node, tree)
        ):
            continue
        decorators = getattr(node, "decorator_list", [])
        rows = slice(min(n.lineno for n in (node, *decorators)) - 1, node.end_lineno)
        kept[rows] = lines[rows]
    return "\n".join(kept)


def _is_constant(node: ast.stmt) -> bool:
    """Whether a statement assigns arithmetic on numbers, which is quick and touches nothing."""
    if not _targets(node):
        return False
    parts = list(ast.walk(node.value))
    calls = [part.func for part in parts if isinstance(part, ast.Call)]
    return all(isinstance(part, _ARITHMETIC) for part in parts) and all(map(_makes_number, calls))


def _makes_number(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id in _NUMBER_MODULES
    return isinstance(function, ast.Name) and function.id in _NUMBER_MAKERS


def _stands_alone(node: ast.stmt, tree: ast.Module) -> bool:
    others = (other for other in tree.body if other is not node)
    return all(o.end_lineno < node.lineno or o.lineno > node.end_lineno for o in others)
