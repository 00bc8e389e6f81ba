"""What a failed compilation says: the compiler's words, the student's line, a caret, a remedy."""

import re
from dataclasses import dataclass

DIAGNOSTIC = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): "
    r"(?P<severity>catastrophic error|error|warning)(?: #\S+)?: (?P<message>.*)$"
)
PTXAS_ERROR = re.compile(r"ptx input, line (?P<line>\d+); error\s*:\s*(?P<message>.*)")

STANDARD_HEADER = "delete the line: printf, math and the fixed-width integers are built in"
NEEDS_CCCL = "it belongs to CUDA's C++ libraries: pip install nvidia-cuda-cccl"
MISSING_HEADER_REMEDIES = (
    (r"crt/mma\.h", "mma.h also needs another wheel: pip install nvidia-cuda-crt"),
    (r"cuda/.*|nv/target|cub/.*|thrust/.*", NEEDS_CCCL),
    (r"cuda_\w+\.h|\w*mma\.h", "the CUDA headers are missing: pip install nvidia-cuda-runtime"),
    (r"\w+|c?\w+\.h", STANDARD_HEADER),
)


class NvrtcNotFound(RuntimeError):
    """There is neither NVRTC on this machine nor shipped PTX for the source."""


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler: file, 1-based line, severity and text."""

    filename: str
    line: int
    severity: str
    message: str


class CompileError(ValueError):
    """The source does not compile.

    `str(error)` is the compiler's own text with the offending line and a caret, then a remedy if
    one is known. `.diagnostics` holds the same as data; `.log` is everything the compiler said.
    """

    def __init__(self, filename: str, log: str, remedy: str = ""):
        self.filename = filename
        self.log = log
        self.diagnostics = diagnostics(log)
        said = "\n".join(paragraph for paragraph in _paragraphs(log) if not _is_warning(paragraph))
        self.remedy = remedy or missing_header_remedy(log)
        super().__init__(
            f"{filename} does not compile\n{said}" + (f"\n→ {self.remedy}" if self.remedy else "")
        )

    def __reduce__(self):
        """Survive the trip from a child process."""
        return type(self), (self.filename, self.log, self.remedy)


def diagnostics(log: str) -> list[Diagnostic]:
    """Errors and warnings in a compiler log, in order."""
    found = filter(None, map(DIAGNOSTIC.match, log.splitlines()))
    return [Diagnostic(m["file"], int(m["line"]), m["severity"], m["message"]) for m in found]


def missing_header_remedy(log: str) -> str:
    """What to do about the first header that could not be opened; "" if none is missing."""
    missing = re.search(r'cannot open source file "([^"]+)"', log)
    if not missing:
        return ""
    for pattern, remedy in MISSING_HEADER_REMEDIES:
        if re.fullmatch(pattern, missing[1]):
            return f'"{missing[1]}": {remedy}'
    return f'"{missing[1]}" is in none of the include folders: add options=("-I...",)'


def source_line_of_ptx_error(log: str, ptx: str, source: str, filename: str) -> str:
    """Name the source line of the first ptxas error, which speaks of PTX lines only."""
    error = PTXAS_ERROR.search(log)
    if not error:
        return ""
    before = ptx.splitlines()[: int(error["line"])]
    places = [m for line in before if (m := re.match(r"\s*\.loc\s+1\s+(\d+)\s+(\d+)", line))]
    if not places:
        return ""
    number, column = int(places[-1][1]), int(places[-1][2])
    text = source.splitlines()[number - 1]
    return f"{filename}({number}): {error['message']}\n  {text}\n  {' ' * (column - 1)}^"


def _paragraphs(log):
    """The log cut before each diagnostic and at blank lines: message, source line and caret."""
    blocks, current = [], []
    for line in log.splitlines():
        if current and (not line.strip() or DIAGNOSTIC.match(line)):
            blocks.append("\n".join(current))
            current = []
        if line.strip():
            current.append(line)
    return blocks + (["\n".join(current)] if current else [])


def _is_warning(paragraph):
    found = DIAGNOSTIC.match(paragraph.partition("\n")[0])
    return (found and found["severity"] == "warning") or paragraph.startswith("Remark:")
