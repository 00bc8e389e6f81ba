"""The model machine: a large slow memory (HBM), a small fast one (SRAM), and a meter between.

An array in HBM does no arithmetic. A kernel loads a tile (`q = Q[i:j]`), computes on it with
plain NumPy, and stores a tile back (`O[i:j] = o`). Every byte that crosses is counted for its
array, and every loaded tile that is still alive takes up room in SRAM.

    machine = Machine(sram_bytes=192 * 1024)
    Q = machine.hbm("Q", np.ones((128, 64), np.float32))
    q = Q[0:32]                     # 32 · 64 · 4 = 8192 bytes read
    machine.traffic["Q"].read       # 8192
"""

import weakref
from dataclasses import dataclass, field

import numpy as np

from reference_numpy.traffic import Traffic

SRAM_BYTES = 192 * 1024  # one streaming multiprocessor of an A100


class SramOverflow(MemoryError):
    """The loaded tiles that are still alive do not fit on the chip together."""


class InHbm(TypeError):
    """Something was tried with HBM that only loads and stores of tiles can do."""


@dataclass(frozen=True)
class Region:
    """A rectangular part of an HBM array: one (start, stop) per axis.

    `dropped` are the axes indexed with a single number, which the tile does not keep.
    """

    bounds: tuple[tuple[int, int], ...]
    dropped: tuple[int, ...] = ()

    @classmethod
    def of(cls, key, shape: tuple[int, ...], name: str) -> "Region":
        """Turn an index such as `i:j`, `i:j, a:b`, `3` or `...` into a region of `shape`."""
        keys = _expand_ellipsis(key if isinstance(key, tuple) else (key,), len(shape), name)
        bounds, dropped = [], []
        for axis, (k, n) in enumerate(zip(keys, shape, strict=True)):
            if isinstance(k, slice):
                bounds.append(_slice_bounds(k, n, name))
            else:
                bounds.append(_row_bounds(k, n, name))
                dropped.append(axis)
        return cls(tuple(bounds), tuple(dropped))

    @property
    def slices(self) -> tuple[slice, ...]:
        """The region as NumPy slices."""
        return tuple(slice(start, stop) for start, stop in self.bounds)

    @property
    def size(self) -> int:
        """Elements inside."""
        return int(np.prod([stop - start for start, stop in self.bounds], dtype=np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tile, without the dropped axes."""
        return tuple(
            stop - start
            for axis, (start, stop) in enumerate(self.bounds)
            if axis not in self.dropped
        )

    def __str__(self) -> str:
        return ", ".join(f"{start}:{stop}" for start, stop in self.bounds)


def _expand_ellipsis(keys: tuple, ndim: int, name: str) -> tuple:
    dots = [at for at, k in enumerate(keys) if k is Ellipsis]
    if len(dots) > 1 or len(keys) - len(dots) > ndim:
        raise IndexError(f"{name} has {ndim} axes: too many indices in {name}[...]")
    whole_axes = (slice(None),) * (ndim - len(keys) + len(dots))
    at = dots[0] if dots else len(keys)
    return keys[:at] + whole_axes + keys[at + len(dots) :]


def _slice_bounds(k: slice, n: int, name: str) -> tuple[int, int]:
    start, stop, step = k.indices(n)
    if step != 1:
        raise IndexError(f"{name}[{k.start}:{k.stop}:{k.step}]: a tile is contiguous, use step 1")
    return start, max(start, stop)


def _row_bounds(k, n: int, name: str) -> tuple[int, int]:
    if isinstance(k, bool | np.ndarray) or not hasattr(k, "__index__"):
        raise IndexError(
            f"{name}[{k!r}]: index HBM with whole numbers and slices, e.g. {name}[i:j]"
        )
    i = k.__index__()
    if not -n <= i < n:
        raise IndexError(f"{name}[{i}]: the axis has {n} entries")
    return i % n, i % n + 1


@dataclass(frozen=True)
class Event:
    """One thing that happened on the machine, in order; the widgets replay these.

    `kind` is "load", "store" or "free"; `nbytes` crosses the bus (0 for "free");
    `sram_bytes` is what the live loaded tiles take up afterwards.
    """

    kind: str
    array: str
    bounds: tuple[tuple[int, int], ...]
    nbytes: int
    sram_bytes: int


@dataclass
class Sram:
    """On-chip memory: the loaded tiles that the kernel still holds.

    A tile leaves when Python lets go of it. In `k = K[j]` the old tile is alive for an instant
    while the new one arrives, so what must fit is judged at the next load or store (`settle`).
    """

    capacity: int
    live: dict[int, tuple[str, Region, int]] = field(default_factory=dict)
    used: int = 0
    peak: int = 0

    def settle(self) -> None:
        """Judge what is on chip now. Raises SramOverflow, naming the tiles, if it does not fit."""
        self.peak = max(self.peak, self.used)
        if self.used > self.capacity:
            held = ", ".join(f"{name}[{region}]" for name, region, _ in self.live.values())
            raise SramOverflow(
                f"{self.used:,} bytes of tiles in {self.capacity:,} bytes of SRAM: {held}. "
                "Load smaller tiles, or let go of one (`del tile`) before loading the next."
            )


class Machine:
    """HBM, SRAM and the meter between them.

    Args:
        sram_bytes: capacity of SRAM for loaded tiles, in bytes.
    """

    def __init__(self, sram_bytes: int = SRAM_BYTES):
        self.sram = Sram(sram_bytes)
        self.traffic = Traffic()
        self.events: list[Event] = []
        self.sealed = False
        self.reserved: list[HbmArray] = []
        self._data: dict[str, np.ndarray] = {}
        self._refs: dict[int, weakref.ref] = {}

    def hbm(self, name: str, array: np.ndarray) -> "HbmArray":
        """Put a copy of `array` (any shape, a float dtype) into HBM under `name`; not metered."""
        if self.sealed:
            raise InHbm(
                f"{name}: a kernel cannot reserve HBM; the arrays it is given are all it has"
            )
        if name in self._data:
            raise ValueError(f"HBM already holds an array called {name!r}: choose another name")
        data = np.array(array)
        if data.dtype.kind not in "fV":
            raise TypeError(f"{name} is {data.dtype}: HBM arrays are floating point")
        self._data[name] = data
        self.traffic.add(name)
        return HbmArray(self, name, data.shape, data.dtype)

    def empty(self, name: str, shape: tuple[int, ...], dtype=np.float32) -> "HbmArray":
        """Reserve HBM for a result. It holds NaN until the kernel has stored to it."""
        array = self.hbm(name, np.full(shape, np.nan, dtype))
        self.reserved.append(array)
        return array

    def seal(self) -> None:
        """Allow no further arrays: from here on a kernel runs, and kernels do not allocate."""
        self.sealed = True

    def fits(self, array: "HbmArray") -> bool:
        """Whether `array`, loaded whole, takes at most half of SRAM and so leaves room for tiles.

        A kernel keeps such an array on chip: `K = K[:] if machine.fits(K) else K`. From then on
        `K[j]` is a view of the copy on chip, which costs nothing, or a metered load.
        """
        return 2 * 4 * int(np.prod(array.shape, dtype=np.int64)) <= self.sram.capacity

    def to_host(self, name: str) -> np.ndarray:
        """A copy of an HBM array for looking at, outside any kernel; not metered."""
        return self._data[name].copy()

    def load(self, array: "HbmArray", region: Region) -> np.ndarray:
        """Bring a region on chip as fp32 and meter it at the width it has in HBM."""
        self.sram.settle()
        tile = self._fetch(array.name, region)
        nbytes = region.size * array.dtype.itemsize
        self.traffic.read(array.name, nbytes)
        self._hold(array.name, region, tile)
        self._record("load", array.name, region, nbytes)
        return tile

    def store(self, array: "HbmArray", region: Region, values) -> None:
        """Write a region back, cast to the dtype it has in HBM, and meter it."""
        self.sram.settle()
        self._put(array.name, region, _fit(values, region, array.name))
        nbytes = region.size * array.dtype.itemsize
        self.traffic.write(array.name, nbytes)
        self._record("store", array.name, region, nbytes)

    def _fetch(self, name: str, region: Region) -> np.ndarray:
        window = self._data[name][region.slices]
        tile = np.empty(region.shape, np.float32)  # owns its memory, so views keep it alive
        tile.reshape(window.shape)[...] = window
        return tile

    def _put(self, name: str, region: Region, values: np.ndarray) -> None:
        window = self._data[name][region.slices]
        with np.errstate(over="ignore"):  # a value too large for fp16 becomes inf, as on the GPU
            window[...] = values.reshape(window.shape).astype(window.dtype)

    def _hold(self, name: str, region: Region, tile: np.ndarray) -> None:
        # A tile of zero bytes or a huge one is the same to us: alive until its last view dies.
        if tile.nbytes > self.sram.capacity:
            raise SramOverflow(
                f"{name}[{region}] is {tile.nbytes:,} bytes; SRAM holds {self.sram.capacity:,}. "
                "Load a smaller tile."
            )
        key = id(tile)
        self._refs[key] = weakref.ref(tile, lambda _: self._release(key))
        self.sram.live[key] = (name, region, tile.nbytes)
        self.sram.used += tile.nbytes

    def _release(self, key: int) -> None:
        name, region, nbytes = self.sram.live.pop(key)
        del self._refs[key]
        self.sram.used -= nbytes
        self._record("free", name, region, 0)

    def _record(self, kind: str, name: str, region: Region, nbytes: int) -> None:
        self.events.append(Event(kind, name, region.bounds, nbytes, self.sram.used))


def _fit(values, region: Region, name: str) -> np.ndarray:
    values = np.asarray(values)
    try:
        return np.broadcast_to(values, region.shape)
    except ValueError:
        raise ValueError(
            f"{name}[{region}] takes a tile of shape {region.shape}, you stored {values.shape}"
        ) from None


class HbmArray:
    """An array that lies in HBM. Index it to load a tile, assign to store one; nothing else."""

    def __init__(self, machine: Machine, name: str, shape: tuple[int, ...], dtype):
        self._machine = machine
        self.name = name
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes it takes up in HBM."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.name} in HBM, shape {self.shape}, {self.dtype}, {self.nbytes:,} bytes>"

    def __getitem__(self, key) -> np.ndarray:
        return self._machine.load(self, Region.of(key, self.shape, self.name))

    def __setitem__(self, key, values) -> None:
        self._machine.store(self, Region.of(key, self.shape, self.name), values)

    def _refuse(self, *_args, **_kwargs):
        raise InHbm(
            f"{self.name} lives in HBM, where nothing is computed. "
            f"Load a tile first: tile = {self.name}[i:j]"
        )

    def __getattr__(self, attribute: str):
        # Only what a NumPy array would have: `Q.max()` deserves an explanation, a typo does not.
        if hasattr(np.ndarray, attribute) and not attribute.startswith("_"):
            self._refuse()
        raise AttributeError(f"an array in HBM has no attribute {attribute!r}")

    # `tile @ Q` and `np.exp(Q)` come through these two, `Q @ tile` through the operators below.
    __array_ufunc__ = __array_function__ = __array__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __pow__ = __neg__ = _refuse
    __iter__ = __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __float__ = __bool__ = _refuse
    __hash__ = None
    T = property(_refuse)
