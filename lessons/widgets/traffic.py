"""Tiles flying between HBM and SRAM: a replay of what a kernel did on the model machine.

from lessons.widgets.traffic import TrafficView
TrafficView(machine)                                             # one run
TrafficView({"three kernels": standard, "FlashAttention": flash})  # two, side by side
"""

import math

import traitlets as t

from lessons.widgets.stepper import SteppedWidget, front_end

TILE_ITEMSIZE = 4  # a loaded tile is fp32 on chip, whatever its width in HBM
MAX_STEPS = 200  # longer runs show several transfers in one step
MAX_ARRAYS = 12


def traffic_trace(events, arrays, together: int = 1) -> list[dict]:
    """The state after every `together` transfers of a run.

    Args:
        events: `machine.events`: loads, stores and frees in order.
        arrays: name -> shape of every HBM array.
        together: transfers in one step.

    Returns:
        One dict a step. `transfers`: what crossed, each with kind, array, rows, cols, nbytes and,
        for a load, whether the tile is still `alive`; `live`: the loaded tiles still on chip,
        with their bytes there; `sram_bytes`: their sum; `read` and `written`: bytes so far for
        each array; `total`: over all arrays.

    A tile that is let go belongs to the step before: what counts as being on chip is what is
    there when the next transfer begins, as `Sram.settle` judges it.

    Raises:
        ValueError: no transfer in `events`, or an event of an array that `arrays` lacks.
    """
    live: list[dict] = []
    read, written = dict.fromkeys(arrays, 0), dict.fromkeys(arrays, 0)
    trace: list[dict] = []
    for transfers, frees in _steps(_transfers(events, arrays), together):
        for tile in transfers:
            counter = read if tile["kind"] == "load" else written
            counter[tile["array"]] += tile["nbytes"]
            if tile["kind"] == "load":
                live.append(tile)
        for gone in frees:
            live.remove(next(tile for tile in live if _place(tile) == _place(gone)))
        trace.append(_state(transfers, live, read, written))
    return trace


def _transfers(events, arrays) -> list[tuple[dict, list[dict]]]:
    """Each transfer with the tiles that were let go between it and the next one."""
    steps: list[tuple[dict, list[dict]]] = []
    for event in events:
        if event.array not in arrays:
            raise ValueError(f"the run touches {event.array}, but arrays lists {', '.join(arrays)}")
        if event.kind == "free":
            steps[-1][1].append(_tile(event))
        else:
            steps.append((_tile(event), []))
    if not steps:
        raise ValueError("no transfers: run a kernel on the machine, then show machine.events")
    return steps


def _steps(transfers, together: int):
    for start in range(0, len(transfers), together):
        chunk = transfers[start : start + together]
        yield [tile for tile, _ in chunk], [gone for _, frees in chunk for gone in frees]


def _tile(event) -> dict:
    rows, cols = (*event.bounds, (0, 1))[:2]
    return {
        "kind": event.kind,
        "array": event.array,
        "rows": list(rows),
        "cols": list(cols),
        "nbytes": event.nbytes,
    }


def _place(tile: dict) -> tuple:
    return tile["array"], *tile["rows"], *tile["cols"]


def _on_chip_bytes(tile: dict) -> int:
    return math.prod(stop - start for start, stop in (tile["rows"], tile["cols"])) * TILE_ITEMSIZE


def _state(transfers: list, live: list, read: dict, written: dict) -> dict:
    kept = {id(tile) for tile in live}
    held = [{**tile, "nbytes": _on_chip_bytes(tile)} for tile in live]
    return {
        "transfers": [{**tile, "alive": id(tile) in kept} for tile in transfers],
        "live": [{key: tile[key] for key in ("array", "rows", "cols", "nbytes")} for tile in held],
        "sram_bytes": sum(tile["nbytes"] for tile in held),
        "read": dict(read),
        "written": dict(written),
        "total": sum(read.values()) + sum(written.values()),
    }


def together_for(events, most: int = MAX_STEPS) -> int:
    """How many transfers share a step so that a run fits in `most` steps."""
    return max(1, -(-sum(event.kind != "free" for event in events) // most))


class TrafficView(SteppedWidget):
    """Replay one run, or two side by side; step k shows both after the same number of transfers.

    Args:
        source: a Machine that ran a kernel; a dict of two, name -> Machine; or `machine.events`.
        arrays: with events, the HBM arrays: name -> shape, or the HbmArray objects.
        sram_bytes: with events, the capacity of SRAM in bytes.

    Raises:
        ValueError: nothing ran, more than two runs, or arrays that are not one- or two-dimensional.
    """

    _esm = front_end("traffic.js")
    title = t.Unicode("HBM traffic, tile by tile").tag(sync=True)
    beside = t.List(help="the second run's trace, empty if there is one run").tag(sync=True)
    runs = t.List(help="for each run: name, arrays (name and shape), sram_bytes").tag(sync=True)
    together = t.Int(1, help="transfers in one step").tag(sync=True)

    def __init__(self, source, arrays=None, sram_bytes: int | None = None, **traits):
        runs = _runs(source, arrays, sram_bytes)
        together = max(together_for(events) for _, events, _, _ in runs)
        traces = [traffic_trace(events, shapes, together) for _, events, shapes, _ in runs]
        traces.append([])
        super().__init__(
            trace=traces[0],
            beside=traces[1],
            runs=[_described(name, shapes, capacity) for name, _, shapes, capacity in runs],
            together=together,
            **traits,
        )

    @t.validate("step")
    def _inside_the_longer_trace(self, proposal) -> int:
        return max(0, min(proposal["value"], max(len(self.trace), len(self.beside)) - 1))

    def describe(self) -> str:
        """The first transfer and the bytes of every array at the end, for each run."""
        lines = []
        for run, trace in zip(self.runs, [self.trace, self.beside], strict=False):
            first, end = trace[0], trace[-1]
            tile = first["transfers"][0]
            lines.append(f"HBM traffic{': ' + run['name'] if run['name'] else ''}")
            lines.append(
                f"first: {tile['kind']} {tile['array']}[{tile['rows'][0]}:{tile['rows'][1]}], "
                f"{tile['nbytes']:,} bytes; SRAM {first['sram_bytes']:,} of {run['sram_bytes']:,}"
            )
            lines += [
                f"{name:<6} read {end['read'][name]:>14,}  written {end['written'][name]:>14,}"
                for name in end["read"]
            ]
            lines.append(f"total  {end['total']:,} bytes in {len(trace)} steps")
        return "\n".join(lines)


def _runs(source, arrays, sram_bytes) -> list[tuple]:
    """(name, events, shapes, capacity) of each run."""
    if isinstance(source, dict):
        if not 1 <= len(source) <= 2:
            raise ValueError(f"{len(source)} runs: show one machine, or two by name")
        return [_run_of(name, machine) for name, machine in source.items()]
    if hasattr(source, "events"):
        return [_run_of("", source)]
    if arrays is None or sram_bytes is None:
        raise ValueError("with events give arrays and sram_bytes too, or give the machine")
    if not isinstance(arrays, dict):
        arrays = {array.name: array.shape for array in arrays}
    return [("", list(source), _drawable(arrays), sram_bytes)]


def _run_of(name: str, machine) -> tuple:
    shapes = {array: machine.to_host(array).shape for array in machine.traffic.arrays}
    return name, machine.events, _drawable(shapes), machine.sram.capacity


def _drawable(shapes: dict) -> dict:
    for name, shape in shapes.items():
        if len(shape) not in (1, 2):
            raise ValueError(f"{name} has shape {tuple(shape)}: the picture shows (N,) and (N, d)")
    if len(shapes) > MAX_ARRAYS:
        raise ValueError(f"{len(shapes)} arrays: the picture has room for {MAX_ARRAYS}")
    return {name: tuple(shape) for name, shape in shapes.items()}


def _described(name: str, shapes: dict, capacity: int) -> dict:
    arrays = [{"name": array, "shape": list(shape)} for array, shape in shapes.items()]
    return {"name": name, "arrays": arrays, "sram_bytes": capacity}
