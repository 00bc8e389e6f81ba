"""A Machine whose HBM lies in the judge's process.

SRAM is kept here, so that an honest kernel hears of an overflow at its own line. The meter that
counts is the judge's: whatever is done to this object, a tile comes only by asking for it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.in_process import shut
from autograder.values import dtype_named
from reference_numpy.machine import HbmArray, Machine, Region, SramOverflow

Ask = Callable[[dict[str, Any]], tuple[dict[str, Any], bytes]]
Tell = Callable[[dict[str, Any], bytes], None]


class RemoteMachine(Machine):
    """What a kernel sees while it is graded.

    Args:
        sram_bytes: capacity of SRAM for loaded tiles, in bytes.
        ask: sends a header and returns the judge's answer, header and bytes.
        tell: sends a header and bytes; there is no answer.
    """

    def __init__(self, sram_bytes: int, ask: Ask, tell: Tell):
        super().__init__(sram_bytes)
        self._ask = ask
        self._tell = tell
        self.seal()

    to_host = staticmethod(shut)

    def proxy(self, name: str, shape: list[int], dtype: str) -> HbmArray:
        """The kernel's handle on an array of the judge's HBM."""
        self.traffic.add(name)
        return HbmArray(self, name, tuple(shape), dtype_named(dtype))

    def _fetch(self, name: str, region: Region) -> np.ndarray:
        header, body = self._ask({"op": "load", "array": name, "bounds": region.bounds})
        if "refused" in header:
            raise SramOverflow(header["refused"])
        tile = np.empty(region.shape, np.float32)
        tile.reshape(-1)[...] = np.frombuffer(body, np.float32)
        return tile

    def _put(self, name: str, region: Region, values: np.ndarray) -> None:
        # float64 crosses as it is, so that it is rounded once, to the dtype it has in HBM.
        values = values.astype(np.float64 if values.dtype == np.float64 else np.float32)
        header = {"op": "store", "array": name, "bounds": region.bounds}
        self._tell(header | {"dtype": values.dtype.name}, values.tobytes())
