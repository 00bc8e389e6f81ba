"""The roofline: where a kernel's FLOPs and bytes put it under a GPU's two limits.

    from lessons.widgets.roofline import Roofline
    Roofline({"A100": (312e12, 2.039e12)}, [("softmax", 5 * N * N, 4 * N * N)])

Source: Williams, Waterman and Patterson, "Roofline" (2009).
"""

import math

import traitlets as t

from lessons.widgets.stepper import SteppedWidget, front_end

MAX_POINTS, MAX_DEVICES = 16, 8


def roofline_trace(devices: dict, points) -> list[dict]:
    """One state a kernel: its intensity and, on each device, the roof above it.

    Args:
        devices: name -> (peak FLOP/s, bandwidth in bytes/s).
        points: (name, FLOPs, bytes) of each kernel.

    Returns:
        For each kernel name, flops, nbytes, `intensity` in FLOPs a byte, and `on`: device ->
        `attainable` FLOP/s = min(peak, intensity · bandwidth), `seconds` it takes at least, the
        `share` of the peak, and `bound`, "memory" or "compute".

    Raises:
        ValueError: no device or kernel, too many, or a figure that is not positive and finite.
    """
    if not 1 <= len(devices) <= MAX_DEVICES or not 1 <= len(points) <= MAX_POINTS:
        raise ValueError(
            f"{len(devices)} devices and {len(points)} kernels: "
            f"draw 1 to {MAX_DEVICES} devices and 1 to {MAX_POINTS} kernels"
        )
    for name, rates in devices.items():
        _positive(f"device {name}", peak=rates[0], bandwidth=rates[1])
    return [_point(devices, *point) for point in points]


def _positive(what: str, **figures) -> None:
    for name, figure in figures.items():
        if not (math.isfinite(figure) and figure > 0):
            raise ValueError(f"{what}: {name} = {figure}, but a log axis needs a positive number")


def _point(devices: dict, name: str, flops: float, nbytes: float) -> dict:
    _positive(f"kernel {name}", FLOPs=flops, bytes=nbytes)
    on = {device: _under(*rates, flops, nbytes) for device, rates in devices.items()}
    point = {"name": name, "flops": float(flops), "nbytes": float(nbytes)}
    return {**point, "intensity": flops / nbytes, "on": on}


def _under(peak: float, bandwidth: float, flops: float, nbytes: float) -> dict:
    moving, computing = nbytes / bandwidth, flops / peak
    seconds = max(moving, computing)
    return {
        "attainable": flops / seconds,
        "seconds": seconds,
        "share": computing / seconds,
        "bound": "memory" if moving > computing else "compute",
    }


class Roofline(SteppedWidget):
    """A log-log roofline; a step is a kernel, and the device is chosen in the picture.

    Args:
        devices: name -> (peak FLOP/s, bandwidth in bytes/s).
        points: (name, FLOPs, bytes) of each kernel.
        device: the device shown first; the first one if not given.

    Raises:
        ValueError: see `roofline_trace`; or a device that is not among `devices`.
    """

    _esm = front_end("roofline.js")
    title = t.Unicode("Roofline: arithmetic or memory, whichever takes longer").tag(sync=True)
    devices = t.Dict(help="name -> [peak FLOP/s, bytes/s]").tag(sync=True)
    device = t.Unicode().tag(sync=True)

    def __init__(self, devices: dict, points, device: str | None = None, **traits):
        trace = roofline_trace(devices, points)
        rates = {name: [float(rate) for rate in pair] for name, pair in devices.items()}
        shown = device or next(iter(rates))
        super().__init__(trace=trace, devices=rates, device=shown, **traits)

    @t.validate("device")
    def _known(self, proposal) -> str:
        if proposal["value"] not in self.devices:
            raise ValueError(f"device {proposal['value']!r}: choose from {', '.join(self.devices)}")
        return proposal["value"]

    def describe(self) -> str:
        """The kernels on the device shown, as a table."""
        peak, bandwidth = self.devices[self.device]
        lines = [
            f"Roofline of {self.device}: peak {peak / 1e12:,.0f} TFLOP/s, "
            f"HBM {bandwidth / 1e12:.2f} TB/s, ridge at {peak / bandwidth:.1f} FLOPs a byte",
            f"{'kernel':<24}{'FLOPs':>12}{'bytes':>12}{'FLOP/byte':>12}{'bound':>10}{'time ≥':>12}",
        ]
        lines += [
            f"{p['name']:<24}{p['flops']:>12.3g}{p['nbytes']:>12.3g}{p['intensity']:>12.3g}"
            f"{p['on'][self.device]['bound']:>10}{p['on'][self.device]['seconds'] * 1e6:>9.3g} µs"
            for p in self.trace
        ]
        return "\n".join(lines)
