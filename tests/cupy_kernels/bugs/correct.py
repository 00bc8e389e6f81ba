"""Correct kernels, the inputs to launch them with, and their truth; bugs are cut out of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cupy_kernels.nvrtc import compile_ptx
from cupy_kernels.simulator import launch, load

KERNELS = Path(__file__).parent / "kernels"
d = 64


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel: shape, arguments by name, and how far each output may be off."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: dict
    expected: dict
    tolerance: float = 0.0
    shared_bytes: int = 0

    def run(self, source: str, filename: str, kernel: str, **options):
        """Compile and simulate; returns the launch's counts."""
        ptx = compile_ptx(source, filename=filename).text
        program = load(ptx, source, filename)
        options = {"shared_bytes": self.shared_bytes, "names": tuple(self.arguments)} | options
        arguments = tuple(self.arguments.values())
        return launch(program.kernels[kernel], self.grid, self.block, arguments, **options)

    def wrong(self) -> list[str]:
        """Names of outputs that differ from the truth by more than the tolerance."""
        with np.errstate(invalid="ignore"):
            return [
                name
                for name, want in self.expected.items()
                if not np.all(np.abs(self.arguments[name] - np.float64(want)) <= self.tolerance)
            ]

    def with_arguments(self, **changed) -> "Launch":
        """The same launch with some arguments replaced."""
        return replace(self, arguments=self.arguments | changed)


def source(name: str) -> str:
    """The text of a correct kernel."""
    return (KERNELS / f"{name}.cu").read_text()


def vadd(n=10_000):
    a, b = _floats(n), _floats(n)
    arguments = {"a": a, "b": b, "out": np.zeros(n, np.float32), "n": np.int32(n)}
    return Launch((-(-n // 128),), (128,), arguments, {"out": a + b})


def softmax_rows(N=300, rows=6):
    S = _floats(rows, N) * 3
    P = np.exp(S - S.max(1, keepdims=True), dtype=np.float64)
    arguments = {"S": S, "P": np.zeros_like(S), "N": np.int32(N)}
    return Launch((rows,), (128,), arguments, {"P": P / P.sum(1, keepdims=True)}, 1e-6)


def gemm(N=48):
    A, B = _whole(N, N), _whole(N, N)
    arguments = {"A": A, "B": B, "C": np.zeros((N, N), np.float32), "N": np.int32(N)}
    return Launch((N // 16, N // 16), (16, 16), arguments, {"C": A @ B})


def _attention(Q, K, V):
    S = Q.astype(np.float64) @ K.astype(np.float64).swapaxes(-1, -2) / np.sqrt(d)
    m = S.max(-1)
    P = np.exp(S - m[..., None])
    return P @ V.astype(np.float64) / P.sum(-1)[..., None], m, P.sum(-1)


def flash1(N=64, heads=1):
    Q, K, V = (_floats(heads, N, d) for _ in range(3))
    O, m, l = _attention(Q, K, V)
    zeros = {"O": np.zeros_like(Q), "l": np.zeros((heads, N), np.float32)}
    zeros["m"] = np.zeros((heads, N), np.float32)
    sizes = {"N": np.int32(N), "scale": np.float32(1 / np.sqrt(d))}
    arguments = {"Q": Q, "K": K, "V": V, **zeros, **sizes}
    return Launch((heads,), (128,), arguments, {"O": O, "l": l, "m": m}, 1e-4)


def flash2(N=192, heads=1):
    Q, K, V = (_floats(heads, N, d).astype(np.float16) for _ in range(3))
    O, m, l = _attention(Q, K, V)
    zeros = {"O": np.zeros_like(Q), "LSE": np.zeros((heads, N), np.float32)}
    sizes = {"N": np.int32(N), "scale": np.float32(1 / np.sqrt(d))}
    arguments = {"Q": Q, "K": K, "V": V, **zeros, **sizes}
    expected = {"O": O, "LSE": m + np.log(l)}
    return Launch((-(-N // 64), heads), (128,), arguments, expected, 2e-3)


def stencil(tiles=4, blocks=2):
    a = np.arange(blocks * tiles * 128, dtype=np.int32).reshape(-1, 128) ** 2 % 1009
    around = np.roll(a, 1, 1) + a + np.roll(a, -1, 1)
    arguments = {"a": a, "out": np.zeros_like(a), "tiles": np.int32(tiles)}
    return Launch((blocks,), (128,), arguments, {"out": around})


def block_sums(n=1000):
    x = _whole(n)
    arguments = {"x": x, "total": np.zeros(1, np.float32), "n": np.int32(n)}
    return Launch((-(-n // 64),), (64,), arguments, {"total": x.sum()})


def early_return(n=77):
    a = np.arange(96, dtype=np.int32)
    out = np.full(96, -1, np.int32)
    expected = np.r_[a[:n][::-1], out[n:]]
    return Launch((1,), (96,), {"a": a, "out": out, "n": np.int32(n)}, {"out": expected})


LAUNCHES: dict[str, Callable[..., Launch]] = {
    "vadd": vadd,
    "softmax_rows": softmax_rows,
    "gemm": gemm,
    "flash1": flash1,
    "flash2": flash2,
    "stencil": stencil,
    "block_sums": block_sums,
    "early_return": early_return,
}


def _floats(*shape):
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(np.float32)


def _whole(*shape):
    return np.random.default_rng(shape[-1]).integers(-9, 10, shape).astype(np.float32)
