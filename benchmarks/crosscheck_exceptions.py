"""Counters that differ between simulator and card, kernel by kernel, and why."""

_PRINTF = (
    "the card's printf writes its lines to a buffer in global memory; the simulator's does not"
)
_RETRIES = "how often a lane retries depends on who wins the race, on the card as in the simulator"
_PTXAS_LOCAL = "ptxas joins neighbouring accesses to local memory, or adds its own"
_TWO_HALVES = (
    "Hopper has no fp8 mma.sync: ptxas converts to halves and issues two m16n8k16 products"
)

EXCEPTIONS: dict[str, dict[str, str]] = {
    "printf_lines": dict.fromkeys(
        (
            "load_sectors",
            "load_requests",
            "store_sectors",
            "store_requests",
            "atomic_sectors",
            "atomic_requests",
            "local_sectors",
            "local_requests",
            "shared_wavefronts",
            "shared_conflicts",
        ),
        _PRINTF,
    ),
    "compare_and_swap_loop": dict.fromkeys(("atomic_sectors", "atomic_requests"), _RETRIES),
    "local_array": {"local_requests": _PTXAS_LOCAL},
    "struct_by_value": {"local_requests": _PTXAS_LOCAL},
    "mma_e4m3": {"mma": _TWO_HALVES},
    "mma_e5m2": {"mma": _TWO_HALVES},
}


def reason(kernel: str, counter: str) -> str | None:
    """Why `counter` of `kernel` need not agree, or None if it must."""
    return EXCEPTIONS.get(kernel, {}).get(counter)
