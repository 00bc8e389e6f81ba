"""Small kernels, one for each corner of the language, each with its truth in NumPy."""

from . import (  # noqa: F401  each module enters its cases into SAMPLER
    control,
    floats,
    integers,
    memory,
    narrow_floats,
    random_addresses,
    tensor_cores,
    traffic,
    warps,
)
from .case import SAMPLER, Case

__all__ = ["SAMPLER", "Case"]
