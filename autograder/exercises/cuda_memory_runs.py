"""What the three kernels about memory are tried on: add, transpose, row sum."""

from collections.abc import Iterator

import numpy as np

from autograder.exercise import Tier
from autograder.exercises.cuda_cases import WAVEFRONT, Run, Slot, compulsory, once
from autograder.fixtures import standard_normal
from reference_numpy.tiling import cdiv

# ---- cuda_add -----------------------------------------------------------------------------------

ADD_SIZES = {
    "normal": (1024, "equals x + y"),
    "ragged": (1003, "n need not be a multiple of the block"),
    "one_element": (1, "a single element works"),
}
ADD_LONG = {"long": (100_003, "equals x + y for many blocks")}


def add_runs(tier: Tier, seed: int) -> Iterator[Run]:
    """Lengths that fit the block and lengths that do not."""
    for name, (n, invariant) in (ADD_SIZES | (ADD_LONG if tier is Tier.FULL else {})).items():
        x, y = standard_normal(seed, name, 2, n)
        yield Run(
            slots=(Slot(name, invariant),),
            values={"x": x, "y": y, "n": n},
            truth={"z": x.astype(np.float64) + y},
            naive={"z": x + y},
            reads=dict.fromkeys("xy", (compulsory(n), once(1, n))),
            writes={"z": (compulsory(n), once(1, n))},
            mistakes=lambda x=x, y=y: {
                "x alone is stored": {"z": x},
                "y alone is stored": {"z": y},
                "y is subtracted": {"z": x - y},
            },
        )


# ---- cuda_transpose ----------------------------------------------------------------------------

TRANSPOSE_SHAPES = {
    "normal": (64, 96, "equals the transpose of X"),
    "numbered": (45, 70, "every element lands on its own place, at the ragged edges too"),
    "one_column": (33, 1, "a single column works"),
}
TRANSPOSE_LARGE = {
    "large": (300, 517, "equals the transpose of X for many tiles"),
    "one_row": (1, 130, "a single row works"),
}


def transpose_runs(tier: Tier, seed: int) -> Iterator[Run]:
    """`numbered` holds each element's own place, so a wrong one tells where it came from."""
    shapes = TRANSPOSE_SHAPES | (TRANSPOSE_LARGE if tier is Tier.FULL else {})
    for name, (rows, columns, invariant) in shapes.items():
        x = standard_normal(seed, name, rows, columns)
        if name == "numbered":
            x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        size = compulsory(x.size)
        yield Run(
            slots=(Slot(name, invariant),),
            values={"x": x, "rows": rows, "columns": columns},
            truth={"y": x.T.astype(np.float64)},
            naive={"y": x.T},
            reads={"x": (size, once(rows, columns))},
            writes={"y": (size, once(columns, rows))},
            shared_most=WAVEFRONT * (rows * cdiv(columns, 32) + columns * cdiv(rows, 32)),
            mistakes=lambda x=x: {
                "x is copied, not turned": {"y": x.reshape(x.shape[::-1])},
                "every tile lands in its place but is not turned inside": {"y": _unturned(x)},
            },
        )


def _unturned(x: np.ndarray) -> np.ndarray:
    """x transposed tile by tile, each tile left as it is inside; NaN where it sticks out."""
    rows, columns = x.shape
    padded = np.pad(x, ((0, -rows % 32), (0, -columns % 32)), constant_values=np.nan)
    tiles = padded.reshape(len(padded) // 32, 32, -1, 32).transpose(2, 1, 0, 3)
    return tiles.reshape(padded.shape[::-1])[:columns, :rows]


# ---- cuda_row_sum ------------------------------------------------------------------------------

ROW_SUM_SHAPES = {
    "normal": (8, 256, "equals the sum of each row"),
    "ragged": (5, 301, "n need not be a multiple of the block"),
    "short_rows": (3, 5, "rows shorter than the block work"),
}
ROW_SUM_LARGE = {
    "long_rows": (16, 5000, "equals the sum of each row of many elements"),
    "one_element": (4, 1, "rows of one element work"),
}


def row_sum_runs(tier: Tier, seed: int) -> Iterator[Run]:
    """Rows longer and shorter than a block."""
    shapes = ROW_SUM_SHAPES | (ROW_SUM_LARGE if tier is Tier.FULL else {})
    for name, (rows, n, invariant) in shapes.items():
        x = standard_normal(seed, name, rows, n)
        yield Run(
            slots=(Slot(name, invariant),),
            values={"x": x, "rows": rows, "n": n},
            truth={"y": x.sum(axis=1, dtype=np.float64)},
            naive={"y": np.cumsum(x, axis=1)[:, -1]},  # one after the other, in fp32
            reads={"x": (compulsory(x.size), once(rows, n))},
            writes={"y": (compulsory(rows), 32 * rows)},
            mistakes=lambda x=x: _partial_sums(x),
        )


def _partial_sums(x: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    thread = np.arange(x.shape[1]) % 128
    shares = {
        "only thread 0's share is stored": thread == 0,
        "only the first warp's share is stored": thread < 32,
        "only lane 0 of each warp is added: the shuffles are missing": thread % 32 == 0,
        "only the first 128 elements are added: step on by blockDim.x": np.arange(len(thread))
        < 128,
    }
    wrong = {text: {"y": (x * taken).sum(axis=1)} for text, taken in shares.items()}
    last = x[:, (len(thread) - 1) // 128 * 128 :] if x.shape[1] > 128 else x[:, -1:]
    return wrong | {"every step overwrites the sum: use +=": {"y": last.sum(axis=1)}}
