"""A launch as text: `"cdiv(Nk, 32), cdiv(Nq, 8), batch * heads"` and the problem's sizes.

Text rather than Python code, because a kernel is launched where no student's code may run. Whole
numbers, the problem's names, + - * // %, cdiv, min and max: anything else is refused.
"""

import ast
import operator
from collections.abc import Callable, Mapping

from reference_numpy.tiling import cdiv

LONGEST = 200  # characters
OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
FUNCTIONS: dict[str, Callable[..., int]] = {"cdiv": cdiv, "min": min, "max": max}
ALLOWED = "use whole numbers, + - * // %, cdiv, min and max"


class LaunchTextError(ValueError):
    """The text is no such arithmetic; the message is one line that says where and what."""


def evaluate(what: str, text: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The numbers that `text` stands for: one, or several between commas.

    `what` names the text in messages ("grid"), `sizes` are the names it may use. Raises
    LaunchTextError.
    """
    if len(text) > LONGEST:
        raise LaunchTextError(f"{what}: longer than {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise LaunchTextError(f"{what}: cannot read {text!r}; {ALLOWED}") from None
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    try:
        return tuple(_number(part, sizes) for part in parts)
    except ZeroDivisionError:
        raise LaunchTextError(f"{what}: {text!r} divides by 0") from None
    except LaunchTextError as error:
        raise LaunchTextError(f"{what}: {error}") from None


def _number(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)) if type(value) is int:
            return value
        case ast.Name(id=name):
            return _size(name, sizes)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_number(left, sizes), _number(right, sizes))
        case ast.BinOp(op=ast.Div()):
            raise LaunchTextError(f"{ast.unparse(node)}: / gives a fraction; use cdiv(a, b) or //")
        case ast.Call(func=ast.Name(id=name), args=[_, _] as args, keywords=[]) if (
            name in FUNCTIONS
        ):
            return FUNCTIONS[name](*(_number(argument, sizes) for argument in args))
    raise LaunchTextError(f"{ast.unparse(node)} is not arithmetic on sizes; {ALLOWED}")


def _size(name: str, sizes: Mapping[str, int]) -> int:
    if name not in sizes:
        raise LaunchTextError(f"there is no size {name}; there are {', '.join(sizes)}")
    return sizes[name]
