"""What grading finds out: evidence about one exercise, and the verdict drawn from it."""

from dataclasses import asdict, dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """The verdict on one exercise."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_WRITTEN = "NOT WRITTEN"


@dataclass(frozen=True)
class Finding:
    """One named invariant, tried on one fixture.

    `error` and `allowed` are the max-abs error against float64 and its budget, where that is
    what was tried. `detail` says which rows and tiles; `cause` what usually makes this happen.
    """

    invariant: str
    passed: bool
    fixture: str = ""
    detail: str = ""
    cause: str = ""
    error: float | None = None
    allowed: float | None = None


@dataclass(frozen=True)
class TrafficFinding:
    """Bytes that one array moved in one direction ("read" or "written"), and its closed forms."""

    array: str
    direction: str
    measured: int
    lower: int
    upper: int
    fixture: str = ""
    cause: str = ""

    @property
    def passed(self) -> bool:
        """Whether the measured bytes lie between the closed forms."""
        return self.lower <= self.measured <= self.upper


@dataclass(frozen=True)
class Points:
    """Points for exactness and for traffic (0 where an exercise moves nothing)."""

    exactness: float = 6
    traffic: float = 4

    @property
    def total(self) -> float:
        """Both together."""
        return self.exactness + self.traffic


@dataclass
class Result:
    """The verdict on one exercise and the evidence for it.

    `message` is what stopped the exercise as a whole: a syntax error, an exception, a time limit.
    `printed` is the end of what a graded submission wrote to stdout and stderr; `wall` what stood
    around it: "bubblewrap", "none", or "" where nothing ran in a process of its own.
    """

    exercise: str
    outcome: Outcome
    findings: list[Finding] = field(default_factory=list)
    traffic: list[TrafficFinding] = field(default_factory=list)
    message: str = ""
    earned: Points = Points(0, 0)
    possible: Points = Points()
    seconds: float = 0.0
    printed: str = ""
    wall: str = ""

    def to_dict(self) -> dict:
        """The result as plain JSON values."""
        return asdict(self) | {"outcome": str(self.outcome)}
