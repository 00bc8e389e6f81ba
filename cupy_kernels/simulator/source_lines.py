"""From ``.loc`` directives to source places: which line of the student's file an instruction is.

One ``.loc`` names one level of inlining; the rest of the chain is found by remembering that the
place named by ``inlined_at`` was itself the subject of an earlier ``.loc``.
"""

from __future__ import annotations

import re

from .faults import Place

_LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*?inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?", re.DOTALL
)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)


def read_file_table(ptx: str) -> dict[int, str]:
    """Return ``.file`` number -> path; the directives stand at the end of a PTX text."""
    return {int(number): path for number, path in _FILE.findall(ptx)}


class SourceLines:
    """Follows the ``.loc`` directives of one function and hands out the current ``Place``."""

    def __init__(self, files: dict[int, str], source: str, filename: str):
        self.filename = filename
        self.texts = source.splitlines()
        self.files = files
        base = filename.replace("\\", "/").rsplit("/", 1)[-1]
        mine = {
            n for n, path in files.items() if path.replace("\\", "/").rsplit("/", 1)[-1] == base
        }
        self.own_files = mine or {1}
        self.inlined_at: dict[tuple, tuple | None] = {}
        self.current = Place(0, "", filename)
        self._places: dict[tuple, Place] = {}

    def follow(self, directive: str) -> None:
        """Take one ``.loc`` directive; line 0 (compiler-made code) keeps the previous place."""
        match = _LOC.match(directive)
        if match is None:
            return
        numbers = [int(n) if n is not None else None for n in match.groups()]
        here, caller = tuple(numbers[:3]), tuple(numbers[3:])
        caller = None if caller[0] is None else caller
        if here[1] == 0:
            return
        self.inlined_at[here] = caller
        key = (here, caller)
        if key not in self._places:
            self._places[key] = self._place(self._chain(here, caller))
        self.current = self._places[key]

    def _chain(self, here: tuple, caller: tuple | None) -> list[tuple]:
        chain = [here]
        while caller is not None and caller not in chain:
            chain.append(caller)
            caller = self.inlined_at.get(caller)
        return chain

    def _place(self, chain: list[tuple]) -> Place:
        own = [frame for frame in chain if frame[0] in self.own_files]
        if not own:
            file, line, _ = chain[0]
            return Place(line, "", self.files.get(file, "?"))
        lines = [line for _, line, _ in own]
        innermost = lines[0]
        text = self.texts[innermost - 1] if 0 < innermost <= len(self.texts) else ""
        return Place(innermost, text, self.filename, tuple(lines[1:]))
