"""Every PTX opcode the simulator knows, by family; ``TABLE`` is keyed by root opcode."""

from . import (
    bits,
    compare,
    control,
    conversion,
    floating,
    integer,
    memory,
    moves,
    tensor,
    warp,
)
from .table import TABLE, Opcode, check_known, destinations, dtype_of, immediate

__all__ = [
    "TABLE",
    "Opcode",
    "bits",
    "check_known",
    "compare",
    "control",
    "conversion",
    "destinations",
    "dtype_of",
    "floating",
    "immediate",
    "integer",
    "memory",
    "moves",
    "tensor",
    "warp",
]
