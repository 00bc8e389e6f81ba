"""The marked places of an exercise: what the student writes, and what stands there until then.

A block starts with `### BEGIN SOLUTION` and ends with `### END SOLUTION` at the same
indentation (`// BEGIN SOLUTION` and `// END SOLUTION` in CUDA). The solved copy keeps the block
and drops the markers; the student copy has a stub in its place.
"""

import re
from dataclasses import dataclass

from lessons.source import Cell, Line

_MARKER = re.compile(r"(?P<indent> *)(?P<comment>###|//) (?P<which>BEGIN|END) SOLUTION")
_ATTEMPT = re.compile(r"\b(BEGIN|END)[ _]*SOLUTION", re.IGNORECASE)

_STUB = {
    "###": ("# YOUR CODE HERE", "raise NotImplementedError"),
    "//": ("// YOUR CODE HERE",),
}
_COMMENT = {"###": "#", "//": "//"}


@dataclass(frozen=True)
class Block:
    """A marked block: its markers are lines `begin` and `end` of the cell."""

    begin: int
    end: int
    indent: str
    comment: str

    @property
    def stub(self) -> list[str]:
        """What the student finds in place of the block."""
        return [self.indent + line for line in _STUB[self.comment]]


def solved_text(cell: Cell) -> str:
    """The cell with its blocks filled and the markers dropped."""
    dropped = {i for block in solution_blocks(cell) for i in (block.begin, block.end)}
    return "\n".join(line.text for i, line in enumerate(cell.lines) if i not in dropped)


def student_text(cell: Cell) -> str:
    """The cell with a stub in place of each block."""
    texts, position = [], 0
    for block in solution_blocks(cell):
        texts += [line.text for line in cell.lines[position : block.begin]] + block.stub
        position = block.end + 1
    return "\n".join(texts + [line.text for line in cell.lines[position:]])


def solution_blocks(cell: Cell) -> list[Block]:
    """The marked blocks of `cell`, in order.

    Raises LessonError for a marker that is misspelt, unpaired, nested or at the wrong
    indentation, for an empty block, for an exercise without a block and for a block elsewhere.
    """
    blocks: list[Block] = []
    begin: tuple[int, re.Match] | None = None
    for i, line in enumerate(cell.lines):
        marker = _MARKER.fullmatch(line.text)
        if not marker:
            if _ATTEMPT.search(line.text):
                cell.fault(
                    line, "misspelt marker; write `### BEGIN SOLUTION` or `### END SOLUTION`"
                )
        elif marker["which"] == "BEGIN":
            if begin:
                cell.fault(line, f"nested block; the one of line {_number(cell, begin)} is open")
            begin = (i, marker)
        else:
            blocks.append(_close(cell, line, begin, i, marker))
            begin = None
    if begin:
        cell.fault(cell.lines[begin[0]], "this block has no `END SOLUTION`")
    _refuse_misplaced(cell, blocks)
    return blocks


def _number(cell: Cell, begin: tuple[int, re.Match]) -> int:
    return cell.lines[begin[0]].number


def _close(
    cell: Cell, line: Line, begin: tuple[int, re.Match] | None, end: int, marker: re.Match
) -> Block:
    if not begin:
        cell.fault(line, "this `END SOLUTION` has no `BEGIN SOLUTION`")
    start, opening = begin
    if opening["comment"] != marker["comment"]:
        cell.fault(line, f"a block that `{opening['comment']}` begins must not end with another")
    if opening["indent"] != marker["indent"]:
        cell.fault(line, f"indented otherwise than the begin in line {_number(cell, begin)}")
    block = Block(start, end, opening["indent"], opening["comment"])
    _refuse_bad_body(cell, line, block)
    return block


def _refuse_bad_body(cell: Cell, end: Line, block: Block) -> None:
    body = [line for line in cell.lines[block.begin + 1 : block.end] if line.text]
    if not body:
        cell.fault(end, "the block is empty; what is the solution?")
    if all(line.text.lstrip().startswith(_COMMENT[block.comment]) for line in body):
        cell.fault(end, "the block holds nothing but comments; what is the solution?")
    for line in body:
        if not line.text.startswith(block.indent):
            cell.fault(line, "indented less than the block's markers")
    if block.comment == "###" and _indent(body[0].text) != len(block.indent):
        cell.fault(body[0], "indented more than the block's markers")
    if block.comment == "###" and not block.indent:
        cell.fault(
            cell.lines[block.begin],
            "a stub at top level would stop the student's notebook; mark inside a function",
        )


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _refuse_misplaced(cell: Cell, blocks: list[Block]) -> None:
    if cell.exercise and not blocks:
        cell.fault(cell.marker, "an exercise without a `### BEGIN SOLUTION` leaves nothing to do")
    if blocks and not cell.exercise:
        place = cell.lines[blocks[0].begin]
        cell.fault(place, 'solution markers outside an exercise; write `# %% exercise="ID"`')
