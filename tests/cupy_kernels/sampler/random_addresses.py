"""Random addresses, counted by brute force: sectors in global memory, wavefronts in shared."""

import numpy as np

from .case import sample

N = 512
_rng = np.random.default_rng(7)
FROM = _rng.integers(0, 600, N).astype(np.int32)
FROM[::5] = FROM[1::5].repeat(2)[: len(FROM[::5])]  # some lanes share a place
FROM[_rng.random(N) < 0.2] = -1
FROM[64:96] = -1  # one warp has nothing to do
TO = _rng.permutation(N).astype(np.int32)
PLACES = (_rng.integers(0, 128, (4, 128)) // np.array([[1], [2], [8], [40]])).astype(np.int32)
WIDTHS = (1, 2, 4, 8, 16)


def sectors(index, width, active):
    """(requests, sectors) of one access by warps of 32: the distinct 32-byte pieces of each."""
    pieces = [
        {int(k) * width // 32 for k in lanes[mask]}
        for lanes, mask in zip(index.reshape(-1, 32), active.reshape(-1, 32), strict=True)
    ]
    return sum(map(bool, pieces)), sum(map(len, pieces))


def wavefronts(index, width):
    """Wavefronts of one shared access, each phase costing its busiest bank's distinct words."""
    lanes = 32 if width <= 4 else 128 // width
    total = 0
    for phase in index.reshape(-1, lanes):
        words = {int(k) * width // 4 + w for k in phase for w in range(max(width // 4, 1))}
        total += max(np.bincount([word % 32 for word in words]))
    return total


def _gather_counts():
    active, everyone = FROM >= 0, np.ones(N, bool)
    loads = [sectors(np.arange(N), 4, everyone), sectors(np.arange(N), 4, active)]
    loads += [sectors(FROM, width, active) for width in WIDTHS]
    stores = [sectors(TO, width, active) for width in WIDTHS]
    counts = {}
    for kind, pairs in (("load", loads), ("store", stores)):
        counts[f"{kind}_requests"] = sum(requests for requests, _ in pairs)
        counts[f"{kind}_sectors"] = sum(pieces for _, pieces in pairs)
    return counts


def _elements(rng, n, width):
    dtype, columns = {1: ("i1", 1), 2: ("i2", 1)}.get(width, ("f4", width // 4))
    shape = (n, columns) if columns > 1 else n
    return rng.integers(-99, 99, shape).astype(dtype)


@sample(grid=4, block=128, counts=_gather_counts())
def random_gather(rng):
    arrays = {f"a{width}": _elements(rng, 600, width) for width in WIDTHS}
    outputs = {f"o{width}": np.zeros_like(arrays[f"a{width}"][:N]) for width in WIDTHS}
    expected, active = {}, FROM >= 0
    for width in WIDTHS:
        expected[f"o{width}"] = np.zeros_like(outputs[f"o{width}"])
        expected[f"o{width}"][TO[active]] = arrays[f"a{width}"][FROM[active]]
    return {"from": FROM.copy(), "to": TO.copy(), **arrays, **outputs}, expected


def _shared_wavefronts():
    fills = sum(wavefronts(np.tile(np.arange(128), len(PLACES)), width) for width in (4, 8, 16))
    return fills + sum(wavefronts(PLACES.ravel(), width) for width in (4, 8, 16))


@sample(grid=4, block=128, counts={"shared_wavefronts": _shared_wavefronts()})
def random_shared(rng):
    arrays = {f"a{width}": _elements(rng, 128, width) for width in (4, 8, 16)}
    expected = {f"o{width}": arrays[f"a{width}"][PLACES.ravel()] for width in (4, 8, 16)}
    outputs = {name: np.zeros_like(value) for name, value in expected.items()}
    return {"from": PLACES.copy(), **arrays, **outputs}, expected
