"""Does the solved notebook do nothing but fill the student's marked places?

Looks at the two finished notebooks alone and shares no code with what built them, so that a
mistake there cannot hide itself here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LEFTOVER = re.compile(r"(BEGIN|END) SOLUTION|YOUR CODE HERE|raise NotImplementedError")


@dataclass(frozen=True)
class _Stub:
    """A place where the student writes lines that are indented at least like this."""

    indent: str

    def takes(self, line: str) -> bool:
        return not line or line.startswith(self.indent)


def unfaithful(student: dict, solved: dict) -> list[str]:
    """What the solved notebook does beyond filling stubs; empty when nothing.

    Both are notebooks as JSON values. Each finding names the cell by its id.
    """
    pairs = list(zip(student["cells"], solved["cells"], strict=False))
    found = [line for a, b in pairs for line in _compare(a, b)]
    if len(student["cells"]) != len(solved["cells"]):
        counts = f"{len(student['cells'])} cells, the solved one {len(solved['cells'])}"
        found.append(f"the student notebook has {counts}")
    return found


def _compare(student: dict, solved: dict) -> Iterator[str]:
    name = f"cell {student.get('id')!r}"
    if {**student, "source": None} != {**solved, "source": None}:
        yield f"{name}: the copies differ in kind, id, tags or outputs"
    before, after = "".join(student["source"]), "".join(solved["source"])
    if re.search(r"(BEGIN|END) SOLUTION", before):
        yield f"{name}: a marker is left in the student's copy"
    if "exercise" in student["metadata"]:
        yield from (f"{name}: {finding}" for finding in _compare_exercise(before, after))
    # The banner names the folder that its Colab badge opens.
    elif before != after and student.get("id") != "banner":
        yield f"{name}: the text differs, and it is not an exercise"


def _compare_exercise(student: str, solved: str) -> Iterator[str]:
    pattern = _with_stubs(student)
    if not any(isinstance(place, _Stub) for place in pattern):
        yield "the student's copy of this exercise leaves nothing to write"
    elif not _only_fills(pattern, solved):
        yield "solving changes more than the stubs"
    if _LEFTOVER.search(solved):
        yield "a marker or a stub is left in the solved copy"


def _with_stubs(student: str) -> list[str | _Stub]:
    """The student's lines, each stub made into a _Stub."""
    pattern: list[str | _Stub] = []
    lines = student.split("\n")
    for line, above in zip(lines, ["", *lines], strict=False):
        indent = line[: len(line) - len(line.lstrip(" "))]
        if line == f"{indent}// YOUR CODE HERE":
            pattern.append(_Stub(indent))
        elif [above, line] == [f"{indent}# YOUR CODE HERE", f"{indent}raise NotImplementedError"]:
            pattern[-1] = _Stub(indent)
        else:
            pattern.append(line)
    return pattern


def _only_fills(pattern: list[str | _Stub], solved: str) -> bool:
    """Whether `solved` is `pattern` with at least one line written in place of each stub.

    Follows every way to match at once (place in the pattern, is the stub there written in?), so
    that the time is linear in the number of lines however many stubs there are.
    """
    states = {(0, False)}
    for line in solved.split("\n"):
        states = {after for state in states for after in _after(pattern, state, line)}
    return (len(pattern), False) in states or (len(pattern) - 1, True) in states


def _after(
    pattern: list[str | _Stub], state: tuple[int, bool], line: str
) -> Iterator[tuple[int, bool]]:
    """The states that reading `line` leads to."""
    place, written = state
    if written:  # the stub may be left here
        yield from _after(pattern, (place + 1, False), line)
    if place == len(pattern):
        return
    expected = pattern[place]
    if not isinstance(expected, _Stub):
        if line == expected:
            yield place + 1, False
    elif expected.takes(line):
        yield place, written or bool(line.strip())
