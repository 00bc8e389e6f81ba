"""A measured `Traffic` as a table of plain text: kernels, their arrays, and all else counted."""

from cupy_kernels.notices import NOT_MEASURED

PLACES = {"sim": "simulator", "gpu": "GPU"}
COLUMNS = ("loaded B", "stored B", "touched B", "load sectors", "store sectors", "sectors/request")
NAME_WIDTH, COLUMN_WIDTH = 10, 16


def table(traffic) -> str:
    """The whole text, as `repr(traffic)` shows it."""
    if not traffic.kernels:
        return "nothing was launched"
    blocks = [_kernel_block(kernel) for kernel in traffic.kernels]
    if traffic.not_measured:
        blocks.append(f"{NOT_MEASURED}: {traffic.not_measured}")
    return "\n\n".join(blocks)


def title(kernel) -> str:
    """One line that says which kernel, where it ran and how often."""
    times = f"{kernel.launches} launch{'es' * (kernel.launches != 1)}"
    return f"{kernel.kernel} · {kernel.filename} · {PLACES[kernel.device]} · {times}"


def array_rows(kernel) -> list[tuple[str, list[str]]]:
    """(name, cells in the order of COLUMNS) for each array, then for all of them together."""
    named = [(name, array) for name, array in kernel.arrays.items()]
    return [(name, traffic_cells(counts)) for name, counts in [*named, ("all", kernel.totals)]]


def traffic_cells(counts) -> list[str]:
    """Cells of COLUMNS for one array or the totals; cp.async counts as loads.

    "touched" counts each byte once, however often it moves: what no kernel can do without.
    """
    if counts is None:
        return [NOT_MEASURED] * len(COLUMNS)
    loads = {unit: loaded(counts, unit) for unit in ("bytes", "sectors", "requests")}
    sectors = _sum(loads["sectors"], counts.store_sectors)
    requests = _sum(loads["requests"], counts.store_requests)
    touched = _sum(counts.unique_bytes_read, counts.unique_bytes_written)
    moved = (loads["bytes"], counts.store_bytes, touched, loads["sectors"], counts.store_sectors)
    return [*map(number, moved), ratio(sectors, requests)]


def loaded(counts, unit: str) -> int | None:
    """Loads and cp.async together: both bring data from HBM to the chip."""
    plain, copied = getattr(counts, f"load_{unit}"), getattr(counts, f"cp_async_{unit}")
    return plain if copied is None else _sum(plain, copied)


def facts(kernel) -> list[tuple[str, str]]:
    """(what, figures) for the counts that belong to no array."""
    totals = kernel.totals
    shared = (totals.shared_requests, totals.shared_wavefronts, totals.shared_conflicts)
    dram = (totals.dram_read_bytes, totals.dram_write_bytes)
    time = NOT_MEASURED if totals.time_ns is None else f"{totals.time_ns / 1000:,.1f} µs"
    lines = [
        ("shared memory", _worded(shared, ("requests", "wavefronts", "conflicts"))),
        ("arithmetic", _worded(_arithmetic(totals), ("mma FLOPs", "FMAs", "exponentials"))),
        ("warp instructions", _mix(kernel)),
        ("DRAM", _worded(dram, ("B read", "B written"))),
        ("time", time),
    ]
    if totals.atomic_requests:
        atomics = (totals.atomic_requests, totals.atomic_sectors)
        lines.insert(1, ("atomics", _worded(atomics, ("requests", "sectors"))))
    return lines + [("warning", text) for text in kernel.warnings]


def number(value: int | None) -> str:
    """A count with thousands marked, or "not measured"."""
    return NOT_MEASURED if value is None else f"{value:,}"


def ratio(sectors: int | None, requests: int | None) -> str:
    """Sectors per request; 4 is the ideal for 32 threads of 4 bytes."""
    if sectors is None or requests is None:
        return NOT_MEASURED
    return f"{sectors / requests:.2f}" if requests else "–"


def _kernel_block(kernel):
    lines = [title(kernel), _row("array", COLUMNS)]
    lines += [_row(name, cells) for name, cells in array_rows(kernel)]
    lines += [f"  {what + ':':<19}{figures}" for what, figures in facts(kernel)]
    return "\n".join(lines)


def _row(name, cells):
    return f"  {name:<{NAME_WIDTH}}" + "".join(f"{cell:>{COLUMN_WIDTH}}" for cell in cells)


def _worded(values, words):
    if None in values:
        return NOT_MEASURED
    return ", ".join(f"{value:,} {word}" for value, word in zip(values, words, strict=True))


def _arithmetic(totals):
    return totals.mma_flops, totals.fma_lanes, totals.ex2_lanes


def _mix(kernel):
    mix = kernel.instruction_mix
    if mix is None:
        return NOT_MEASURED
    total = sum(mix.values())
    shares = sorted(mix.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{count / total:.0%} {group}" for group, count in shares if count)
    return f"{total:,}: {shown}"


def _sum(a, b):
    return None if a is None or b is None else a + b
