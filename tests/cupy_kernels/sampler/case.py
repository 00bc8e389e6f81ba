"""One entry of the sampler, and how its result is compared with the truth."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .exact import Format

KERNELS = Path(__file__).parent / "kernels"
SAMPLER: dict[str, "Case"] = {}


@dataclass(frozen=True)
class Case:
    """A kernel file, its launch, its inputs with the truth, and how far off a result may be.

    `build(rng)` returns the arguments by name, in the kernel's order, and the expected contents of
    some of them. Without a tolerance a result must be equal bit for bit (any NaN equals any NaN).
    `ulps` and `absolute` give a tolerance per argument, or one per column of it; either suffices.
    `formats` names the format of arguments that hold codes (bfloat16, fp8), so that NaN is known.
    `counts` are hand-made formulas for the simulator's totals, `printed` what printf writes.
    """

    name: str
    build: Callable[[np.random.Generator], tuple[dict, dict]]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    kernel: str
    shared_bytes: int = 0
    ulps: dict[str, int | tuple] = field(default_factory=dict)
    absolute: dict[str, float | tuple] = field(default_factory=dict)
    formats: dict[str, Format] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    printed: str | None = None
    folder: Path = KERNELS

    @property
    def file(self):
        """The CUDA source."""
        return self.folder / f"{self.name}.cu"

    @property
    def source(self):
        """The text of the CUDA source."""
        return self.file.read_text()

    @property
    def name_expressions(self):
        """What NVRTC must instantiate: the kernel's name where it is a template."""
        return (self.kernel,) if "<" in self.kernel else ()

    def arguments(self):
        """Fresh arguments and the truth; the same ones each time."""
        return self.build(np.random.default_rng(20220527))

    def differences(self, arguments, expected):
        """One line for each argument that is not as expected, naming the worst element."""
        return [
            line
            for name, want in expected.items()
            if (line := self._difference(name, arguments[name], want))
        ]

    def _difference(self, name, got, want):
        want = np.asarray(want).astype(got.dtype, copy=False).reshape(got.shape)
        apart = ulps_apart(got, want, self.formats.get(name))
        wrong = apart > np.asarray(self.ulps.get(name, 0))
        if name in self.absolute:
            with np.errstate(invalid="ignore"):
                wrong &= ~(np.abs(got.astype(np.float64) - want) <= np.asarray(self.absolute[name]))
        if not wrong.any():
            return None
        worst = np.argmax(np.where(wrong, apart, -1))
        index = tuple(int(k) for k in np.unravel_index(worst, got.shape))
        return (
            f"{name}{list(index)} is {got[index]!r}, not {want[index]!r} "
            f"({int(wrong.sum())} of {got.size} differ, at most {apart[index]:g} ulps)"
        )


def sample(*, grid=1, block=32, kernel=None, **options):
    """Enter the decorated `build` function, named as its kernel file, into SAMPLER."""

    def enter(build):
        name = build.__name__
        SAMPLER[name] = Case(name, build, _tuple(grid), _tuple(block), kernel or name, **options)
        return build

    return enter


def _tuple(extent):
    return (extent,) if isinstance(extent, int) else extent


def ulps_apart(got, want, code_format=None):
    """Distance of two arrays in units in the last place; 0 only where the bits agree or both are
    NaN, infinite where just one is NaN or the signs of two zeros differ. Integers count plainly.
    """
    if code_format is not None:
        nan_got, nan_want = (
            np.array([code_format.is_nan(int(c)) for c in x.ravel()], bool).reshape(x.shape)
            for x in (got, want)
        )
        sign = code_format.sign
    elif got.dtype.kind == "f":
        nan_got, nan_want = np.isnan(got), np.isnan(want)
        sign = 1 << (8 * got.itemsize - 1)
    else:
        return np.abs(got.astype(object) - want.astype(object)).astype(np.float64)
    unsigned = np.dtype(f"u{got.itemsize}")
    a, b = (_on_a_line(x.view(unsigned).astype(object), sign) for x in (got, want))
    apart = np.abs(a - b).astype(np.float64)
    apart[(apart == 0) & (got.view(unsigned) != want.view(unsigned))] = np.inf
    apart[nan_got != nan_want] = np.inf
    apart[nan_got & nan_want] = 0
    return apart


def _on_a_line(codes, sign):
    return np.where(codes >= sign, sign - codes, codes)
