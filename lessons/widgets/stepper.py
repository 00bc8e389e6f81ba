"""What every widget of the course shares: a trace, the step it shows, and one front end.

A widget is a trace computed beforehand (a list of states, one a step) and a script that draws
state k. Stepping and playing happen in the browser: no kernel is needed once it is displayed.
"""

import json
import math
from pathlib import Path

import anywidget
import traitlets as t

FOLDER = Path(__file__).parent


def front_end(*scripts: str) -> str:
    """The ESM of one widget: the shared style and stepper.js, then the widget's own scripts.

    Nothing is imported at run time, so it works without a network and in a shadow DOM.
    """
    style = (FOLDER / "widget.css").read_text(encoding="utf-8")
    parts = [(FOLDER / name).read_text(encoding="utf-8") for name in ("stepper.js", *scripts)]
    return "\n".join([f"const STYLE = {json.dumps(style)};", *parts])


def to_wire(value):
    """`value` with ±∞ and NaN spelt out ("-inf"), since JSON has no numbers for them."""
    if isinstance(value, dict):
        return {key: to_wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def from_wire(value):
    """The inverse of `to_wire`; other strings stay strings."""
    if isinstance(value, dict):
        return {key: from_wire(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_wire(item) for item in value]
    return float(value) if value in ("-inf", "inf", "nan") else value


WIRE = {
    "sync": True,
    "to_json": lambda value, _widget: to_wire(value),
    "from_json": lambda value, _widget: from_wire(value),
}


def decimal(x: float) -> str:
    """A number as the pictures write it: four decimals, whole numbers and powers kept short.

    >>> decimal(0.13533528), decimal(-1.0), decimal(9.4e-14), decimal(float("-inf"))
    ('0.1353', '−1', '9.40e−14', '−∞')
    """
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "−∞" if x < 0 else "∞"
    if x == int(x) and abs(x) < 1e6:
        words = str(int(x))  # no sign on a zero
    else:
        words = f"{x:.4f}" if 5e-5 <= abs(x) < 1e5 else f"{x:.2e}"
    return words.replace("-", "−")


class SteppedWidget(anywidget.AnyWidget):
    """Base of the widgets: `trace` (one state a step) and `step` (which is shown, from 0).

    A subclass sets `_esm`, `title` (the heading) and `describe` (the text shown where there is
    no front end).
    """

    title = t.Unicode("").tag(sync=True)
    trace = t.List().tag(**WIRE)
    step = t.Int(0).tag(sync=True)

    @t.validate("step")
    def _inside_the_trace(self, proposal) -> int:
        return max(0, min(proposal["value"], len(self.trace) - 1))

    def describe(self) -> str:
        """The numbers of the widget as plain text."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.describe()

    def _repr_mimebundle_(self, **kwargs):
        # Some versions of anywidget cut this text short; where no widget shows, it is all there is.
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/plain": repr(self)}, metadata
