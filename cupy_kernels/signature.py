"""A kernel's parameters as its CUDA source declares them.

PTX forgets names, const and types; the source has them. They name the arrays in every report and
let a wrong argument be refused by name before anything runs.
"""

import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np

# What a pointer to the type may point at: element kinds and bytes. Signedness is left alone, and
# 16- and 8-bit floats may travel as unsigned integers of their size.
FLOAT16 = (np.float16, np.uint16)
BFLOAT16 = (ml_dtypes.bfloat16, np.uint16)
INT8 = (np.int8, np.uint8, np.bool_)
INT16, INT32, INT64 = (np.int16, np.uint16), (np.int32, np.uint32), (np.int64, np.uint64)
ELEMENT_DTYPES = {
    **dict.fromkeys(("float", "float2", "float3", "float4"), (np.float32,)),
    **dict.fromkeys(("double", "double2"), (np.float64,)),
    **dict.fromkeys(("half", "__half", "half2", "__half2"), FLOAT16),
    **dict.fromkeys(("__nv_bfloat16", "nv_bfloat16", "__nv_bfloat162", "nv_bfloat162"), BFLOAT16),
    "__nv_fp8_e4m3": (ml_dtypes.float8_e4m3fn, np.uint8, np.int8),
    "__nv_fp8_e5m2": (ml_dtypes.float8_e5m2, np.uint8, np.int8),
    **dict.fromkeys(("char", "signed char", "unsigned char", "int8_t", "uint8_t", "bool"), INT8),
    **dict.fromkeys(("short", "unsigned short", "int16_t", "uint16_t"), INT16),
    **dict.fromkeys(("int", "unsigned", "unsigned int", "int32_t", "uint32_t"), INT32),
    **dict.fromkeys(("int2", "int4", "uint2", "uint4"), INT32),
    **dict.fromkeys(("long long", "unsigned long long", "int64_t", "uint64_t"), INT64),
    **dict.fromkeys(("long", "unsigned long", "size_t"), INT64),
}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
KERNEL = re.compile(
    r"(?:\btemplate\s*<(?P<template>[^{};]*?)>\s*)?"
    r'(?:extern\s*"C"\s*)?(?:static\s+|inline\s+)*__global__\s+'
    r"(?P<attributes>(?:__\w+__\s*(?:\([^()]*\))?\s*)*)"
    r"(?:static\s+|inline\s+)*void\s+"
    r"(?P<late>(?:__\w+__\s*(?:\([^()]*\))?\s*)*)"
    r"(?P<name>\w+)\s*\("
)
QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__)\b")


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter. `type` has no const or restrict; a pointer's is what it points at."""

    name: str
    type: str
    is_pointer: bool
    is_const: bool = False
    shape: str = ""

    @property
    def is_output(self) -> bool:
        """Whether the kernel may write through it."""
        return self.is_pointer and not self.is_const

    @property
    def dtypes(self) -> tuple[type, ...]:
        """Element dtypes a pointer accepts or the scalar's own; empty if the type is unknown."""
        return ELEMENT_DTYPES.get(self.type, ())

    def __str__(self):
        const, star = "const " * self.is_const, "*" * self.is_pointer
        return f"{const}{self.type}{star} {self.name}"


@dataclass(frozen=True)
class Signature:
    """A kernel's name and parameters, and its template parameters' names if it has any."""

    name: str
    parameters: tuple[Parameter, ...]
    template_parameters: tuple[str, ...] = ()

    def instance(self, expression: str) -> "Signature":
        """The signature of a template instance, such as "scale<float, 64>": its types put in."""
        arguments = re.search(r"<(.*)>", expression, re.DOTALL)
        if not arguments or not self.template_parameters:
            return self
        values = dict(zip(self.template_parameters, _split(arguments[1]), strict=False))
        substituted = tuple(
            Parameter(p.name, values.get(p.type, p.type), p.is_pointer, p.is_const, p.shape)
            for p in self.parameters
        )
        return Signature(expression, substituted)


def signatures(source: str) -> dict[str, Signature]:
    """All `__global__` functions of a CUDA source, by their plain names."""
    bare = COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    found = {}
    for match in KERNEL.finditer(bare):
        end = _closing_parenthesis(bare, match.end())
        declared = _parameters(bare, source, match.end(), end)
        template = _split(match["template"] or "")
        names = tuple(re.findall(r"\w+", part.partition("=")[0])[-1] for part in template)
        found.setdefault(match["name"], Signature(match["name"], declared, names))
    return found


def base_name(name: str) -> str:
    """Plain name inside a name expression or a mangled name: scale<float>, _Z5scaleIfEvPT_."""
    if not name.startswith("_Z"):
        return name.partition("<")[0].rpartition("::")[2].strip(" &")
    rest, base = re.sub(r"^_ZN?", "", name), name
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        base, rest = rest[length.end() : end], rest[end:]
    return base


def _parameters(bare, source, start, end):
    parameters, position = [], start
    for text in _split(bare[start:end]):
        position = bare.index(text, position) + len(text)
        parameters.append(_parameter(text, _shape_comment(source, position)))
    return tuple(parameters)


def _parameter(text, shape):
    words = re.search(r"(\w+)\s*(?:\[\s*\d*\s*\])?$", text)
    declared = text[: words.start()] if words else text
    is_pointer = "*" in declared or text.endswith("]")
    base = " ".join(QUALIFIERS.sub(" ", declared.replace("*", " ")).split())
    is_const = bool(re.match(r"[^*]*\bconst\b", declared))
    return Parameter(words[1] if words else text, base, is_pointer, is_const, shape)


def _shape_comment(source, position):
    """The shape a parameter's own line states, as in `const float* q,  // [batch, heads, N, d]`."""
    shape = re.match(r"[ \t]*,?[ \t]*\)?[ \t]*\{?[ \t]*//[^\n\[]*(\[[^\]\n]*\])", source[position:])
    return shape[1] if shape else ""


def _split(text):
    """Split at commas outside brackets, blanks trimmed."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "<([{") - (character in ">)]}")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()] if current.strip() else parts


def _closing_parenthesis(text, start):
    depth = 1
    for position in range(start, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position
    return len(text)
