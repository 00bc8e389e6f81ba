"""What the simulator says when a kernel is wrong: one structured exception, for a student."""

from __future__ import annotations

from dataclasses import dataclass, field


class PtxError(Exception):
    """The PTX text holds something the simulator does not know; nothing has run."""


class LaunchError(ValueError):
    """The arguments of a launch do not fit the kernel."""


@dataclass(frozen=True)
class Place:
    """A source position: the innermost frame of the student's own file, and who inlined it.

    ``line`` is the innermost line, ``body_line`` the outermost one (in the kernel's own body), and
    ``call_lines`` the chain between them, innermost call first.
    """

    line: int
    text: str = ""
    filename: str = "kernel.cu"
    call_lines: tuple[int, ...] = ()

    @property
    def body_line(self) -> int:
        """The line in the kernel body to which counters are folded."""
        return self.call_lines[-1] if self.call_lines else self.line

    def __str__(self) -> str:
        where = f"{self.filename}:{self.line}"
        text = f"{where}: {self.text.strip()}" if self.text else where
        return text + "".join(f" (called from line {n})" for n in self.call_lines)


@dataclass
class Party:
    """One side of a race or a wait: which thread of which block did what, and where."""

    role: str
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    place: Place | None = None

    def __str__(self) -> str:
        who = f"thread {self.thread}" if self.thread is not None else "a thread"
        if self.block is not None:
            who += f" of block {self.block}"
        return f"{self.role}: {who}" + (f" at {self.place}" if self.place else "")


@dataclass
class Fault(Exception):
    """A bug that the simulator caught while a kernel ran.

    ``kind`` is a short stable word ("out of bounds", "race", "uninitialised", "misaligned",
    "divergent barrier", "divergent warp operation", "deadlock", "step limit", "time limit",
    "trap", "assertion", "async copy in flight", ...); ``message`` says what happened, ``cause``
    what usually causes it.
    """

    kind: str
    message: str
    kernel: str = ""
    cause: str = ""
    place: Place | None = None
    ptx_line: int = 0
    instruction: str = ""
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    array: str = ""
    byte_offset: int | None = None
    element: int | None = None
    other_lanes: int = 0
    parties: list[Party] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.kind} in kernel {self.kernel}: {self.message}"]
        if self.place:
            lines.append(f"  at {self.place}")
        if self.block is not None or self.thread is not None:
            others = f" (and {self.other_lanes} other lanes)" if self.other_lanes else ""
            lines.append(f"  block {self.block}, thread {self.thread}{others}")
        lines += [f"  {party}" for party in self.parties]
        if self.cause:
            lines.append(f"  usual cause: {self.cause}")
        if self.instruction:
            lines.append(f"  PTX line {self.ptx_line}: {self.instruction}")
        return "\n".join(lines)

    def __reduce__(self):
        return (_rebuild_fault, (self.__dict__.copy(),))

    __hash__ = Exception.__hash__


def _rebuild_fault(state: dict) -> Fault:
    fault = Fault("", "")
    fault.__dict__.update(state)
    return fault
