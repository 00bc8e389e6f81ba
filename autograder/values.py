"""The plain values that may pass between the judge and a student's function.

Numbers, booleans, strings, None, arrays, and lists, tuples and dicts of these. A value becomes a
JSON tree plus the raw bytes of its arrays, and comes back as base classes only: an ndarray
subclass or an object with clever operators arrives as the bytes it holds, or not at all. A
CudaKernel, which is four texts, travels as a dict of them.
"""

from typing import Any

import numpy as np

from autograder.cuda_kernel import CudaKernel

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = frozenset(("bool", *_INTEGERS, "float16", "bfloat16", "float32", "float64"))
DEPTH = 16  # lists within lists


class NotPlain(TypeError):
    """The value is not made of numbers, strings and arrays."""


def dtype_named(name: str) -> np.dtype:
    """The dtype called `name`. Raises NotPlain if values of that dtype do not travel."""
    if not isinstance(name, str) or name not in DTYPES:
        raise NotPlain(f"an array of dtype {str(name)[:40]}: use a float, integer or bool dtype")
    if name == "bfloat16":
        from ml_dtypes import bfloat16

        return np.dtype(bfloat16)
    return np.dtype(name)


def pack(value: Any) -> tuple[Any, bytes]:
    """`value` as a JSON tree and the bytes of its arrays, in order. Raises NotPlain."""
    chunks: list[bytes] = []
    return _tree(value, chunks, DEPTH), b"".join(chunks)


def unpack(tree: Any, body: bytes) -> Any:
    """The value that `pack` took apart. Raises NotPlain unless tree and body fit exactly."""
    reader = _Reader(body)
    value = reader.value(tree, DEPTH)
    if reader.at != len(body):
        raise NotPlain(f"{len(body) - reader.at} bytes belong to no array")
    return value


def plain(value: Any) -> Any:
    """A copy of `value` in base classes. Raises NotPlain if it is made of anything else."""
    return unpack(*pack(value))


def _tree(value: Any, chunks: list[bytes], depth: int) -> Any:
    if depth == 0:
        raise NotPlain(f"lists nested more than {DEPTH} deep")
    if value is None or value is Ellipsis:
        return None
    if isinstance(value, np.ndarray | np.generic):  # first: np.float64 is a float as well
        return _array_tree(value, chunks)
    if isinstance(value, bool | int | float | str):
        base = next(kind for kind in (bool, int, float, str) if isinstance(value, kind))
        return base(value)
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_tree(item, chunks, depth - 1) for item in value]}
    if isinstance(value, CudaKernel):
        return _tree(CudaKernel.as_dict(value), chunks, depth)
    if isinstance(value, dict):
        items = [[_key(key), _tree(item, chunks, depth - 1)] for key, item in value.items()]
        return {"dict": items}
    raise NotPlain(f"a value of type {type(value).__name__}: expected numbers, arrays or lists")


def _array_tree(value: np.ndarray | np.generic, chunks: list[bytes]) -> dict:
    array = np.ascontiguousarray(np.array(value, subok=False)).reshape(np.shape(value))
    dtype_named(array.dtype.name)
    chunks.append(array.tobytes())
    kind = "array" if isinstance(value, np.ndarray) else "scalar"
    return {kind: [array.dtype.name, list(array.shape)]}


def _key(key: Any) -> str | int:
    if not isinstance(key, str | int) or isinstance(key, bool):
        raise NotPlain(f"a dict key of type {type(key).__name__}: use strings or whole numbers")
    return key


class _Reader:
    """Walks a tree that may come from anywhere, taking array bytes off the body."""

    def __init__(self, body: bytes):
        self.body = memoryview(body)
        self.at = 0

    def value(self, tree: Any, depth: int) -> Any:
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        if depth == 0 or not isinstance(tree, dict) or len(tree) != 1:
            raise NotPlain("a value that is not written as the grader writes values")
        ((kind, content),) = tree.items()
        if not isinstance(content, list):
            raise NotPlain(f"a {str(kind)[:20]} without content")
        if kind in ("array", "scalar"):
            array = self.array(content)
            return array if kind == "array" else _scalar(array)
        if kind in ("list", "tuple"):
            items = [self.value(item, depth - 1) for item in content]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return dict(self.item(item, depth - 1) for item in content)
        raise NotPlain(f"a value of unknown kind {str(kind)[:20]!r}")

    def item(self, item: Any, depth: int) -> tuple[str | int, Any]:
        if not isinstance(item, list) or len(item) != 2:
            raise NotPlain("a dict item that is not a pair")
        return _key(item[0]), self.value(item[1], depth)

    def array(self, content: list) -> np.ndarray:
        if len(content) != 2:
            raise NotPlain("an array without dtype and shape")
        dtype, shape = dtype_named(content[0]), whole_numbers(content[1])
        size = dtype.itemsize
        for length in shape:  # Python's own integers: no overflow to hide behind
            size *= length
        if size > len(self.body) - self.at:
            raise NotPlain(f"an array of shape {shape} without its {size} bytes")
        data = bytearray(self.body[self.at : self.at + size])
        self.at += size
        try:
            return np.frombuffer(data, dtype).reshape(shape)
        except ValueError:  # no elements, in a shape too large for NumPy
            raise NotPlain(f"an array of shape {shape}") from None


def whole_numbers(numbers: Any) -> tuple[int, ...]:
    """A short list of integers ≥ 0, as a tuple. Raises NotPlain for anything else."""
    if not isinstance(numbers, list) or len(numbers) > DEPTH:
        raise NotPlain("a shape or bound that is not a short list")
    if not all(type(n) is int and 0 <= n < 2**40 for n in numbers):
        raise NotPlain("a shape or bound that is not made of whole numbers")
    return tuple(numbers)


def _scalar(array: np.ndarray) -> np.generic:
    if array.shape != ():
        raise NotPlain("a scalar with a shape")
    return array[()]
