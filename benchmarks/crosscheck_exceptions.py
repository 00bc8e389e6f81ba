"""Counters that differ between simulator and card, kernel by kernel, and why."""

_PRINTF = (
    "the card's printf writes its lines to a buffer in global memory; the simulator's does not"
)
_RETRIES = "how often a lane retries depends on who wins the race, on the card as in the simulator"
_LOCAL = "ptxas joins neighbouring accesses to local memory, or adds its own"
_JOINED = "ptxas joins neighbouring 4-byte loads from shared memory into 16-byte ones"
_GENERIC = (
    "lanes of one generic load point to global, shared and local memory: the units sort such a "
    "request differently, while the card's per-instruction counters equal the simulator's"
)
_SHARED_FLOAT = "atomicAdd of a float in shared memory is a loop of compare-and-swap on the card"
_TWO_HALVES = (
    "Hopper has no fp8 mma.sync: ptxas converts to halves and issues two m16n8k16 products"
)
_ONE_CONFLICT = (
    "the card counts one conflict in one load of each pass over a tile, 200 of 217,800 wavefronts, "
    "that its own per-instruction counter does not show either: not explained"
)
_NOW_AND_THEN = "the unit's conflict counter adds a wavefront or none, from run to run"

EXCEPTIONS: dict[str, dict[str, str]] = {
    "printf_lines": {
        **dict.fromkeys(("load_sectors", "load_requests", "store_sectors"), _PRINTF),
        **dict.fromkeys(("store_requests", "atomic_sectors", "atomic_requests"), _PRINTF),
        **dict.fromkeys(("local_sectors", "local_requests"), _PRINTF),
    },
    "generic_pointer": {
        **dict.fromkeys(("load_sectors", "load_requests"), _GENERIC),
        **dict.fromkeys(("local_sectors", "local_requests"), _GENERIC),
    },
    "compare_and_swap_loop": dict.fromkeys(("atomic_sectors", "atomic_requests"), _RETRIES),
    "local_array": {"local_requests": _LOCAL},
    "struct_by_value": {"local_requests": _LOCAL},
    "softmax_rows": {"shared_wavefronts": _JOINED},
    "gemm": {"shared_wavefronts": _JOINED},
    "flash1": {"shared_conflicts": _ONE_CONFLICT},
    "barrier_in_a_register": {"shared_conflicts": _NOW_AND_THEN},
    "warp_sync": {"shared_conflicts": _NOW_AND_THEN},
    "stencil": {"shared_conflicts": _NOW_AND_THEN},
    "shared_atomics": dict.fromkeys(("shared_wavefronts", "shared_conflicts"), _SHARED_FLOAT),
    "mma_e4m3": {"mma": _TWO_HALVES},
    "mma_e5m2": {"mma": _TWO_HALVES},
}


def reason(kernel: str, counter: str) -> str | None:
    """Why `counter` of `kernel` need not agree, or None if it must."""
    return EXCEPTIONS.get(kernel, {}).get(counter)
