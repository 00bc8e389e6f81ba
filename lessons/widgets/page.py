"""A widget as one self-contained web page: no Jupyter, no kernel, no network."""

import json
from html import escape

from lessons.widgets.stepper import SteppedWidget, to_wire

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; background: Canvas; }}
body {{
  margin: 16px auto;
  max-width: 1100px;
  padding: 0 16px;
  font: 15px/1.5 system-ui, sans-serif;
}}
h1 {{ font-size: 20px; }}
.fab .title {{ display: none; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<div id="widget"></div>
</main>
<script type="module">
const state = {state};
const listeners = {{}};
const model = {{
  get: (name) => state[name],
  set(name, value) {{
    if (JSON.stringify(state[name]) === JSON.stringify(value)) return;
    state[name] = value;
    for (const listener of [...(listeners["change:" + name] ?? [])]) listener();
  }},
  on: (event, listener) => (listeners[event] ??= new Set()).add(listener),
  off: (event, listener) => listeners[event]?.delete(listener),
  save_changes() {{}},
}};
const source = new Blob([{esm}], {{ type: "text/javascript" }});
const front_end = await import(URL.createObjectURL(source));
const el = document.getElementById("widget");
const unmount = front_end.default.render({{ model, el }});
Object.assign(window, {{ model, front_end, unmount }});
</script>
</body>
</html>
"""


def standalone_page(widget: SteppedWidget) -> str:
    """The HTML of a page that shows `widget` as it is now and steps it in the browser.

    The page defines `model` (a stand-in for the kernel's side, with the same calls) and
    `front_end` (the widget's script), so that tests can look at both.
    """
    names = [name for name in widget.traits(sync=True) if not name.startswith("_")]
    state = {name: getattr(widget, name) for name in names if name not in ("layout", "tooltip")}
    plain = {name: value for name, value in state.items() if _is_plain(value)}
    return PAGE.format(
        title=escape(widget.title),
        state=_inside_script(to_wire(plain)),
        esm=_inside_script(widget._esm),
    )


def _is_plain(value) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list | tuple | dict)


def _inside_script(value) -> str:
    # "</script>" inside a string would end the script element early.
    return json.dumps(value).replace("</", "<\\/")
