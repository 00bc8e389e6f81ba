"""A measured `Traffic` as HTML for a notebook: tables, and the source with a heat column.

No script and no colour of its own for text or background, so it reads on light and dark themes.
Heat is a bar as well as a number; its colours are from the Okabe-Ito palette.
"""

import html

from cupy_kernels import traffic_text as text

ORANGE, VERMILLION = "230,159,0", "213,94,0"
CELL = "padding:1px 8px;text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
CODE = "padding:1px 8px;text-align:left;white-space:pre;font-family:monospace"


def page(traffic) -> str:
    """The whole fragment, as a notebook shows `traffic`."""
    if not traffic.kernels:
        return f"<p>{html.escape(text.table(traffic))}</p>"
    parts = [_kernel(kernel) for kernel in traffic.kernels]
    if traffic.not_measured:
        parts.append(f"<p>not measured: {html.escape(traffic.not_measured)}</p>")
    return "<div>" + "".join(parts) + "</div>"


def _kernel(kernel):
    rows = [_row(name, cells) for name, cells in text.array_rows(kernel)]
    facts = "".join(
        f"<div><b>{html.escape(what)}</b> {html.escape(figures)}</div>"
        for what, figures in text.facts(kernel)
    )
    summary = _table(("array", *text.COLUMNS), rows)
    return f"<h4>{html.escape(text.title(kernel))}</h4>{summary}{facts}{_source(kernel)}"


def _source(kernel):
    """The source, each line with its sectors (as a bar too), requests and bank conflicts."""
    if kernel.lines is None:
        return "<p>per line: not measured (a GPU's counters know no lines)</p>"
    counted = {line.line: line for line in kernel.lines if line.filename == kernel.filename}
    hottest = max((_sectors(line) for line in counted.values()), default=0)
    most_conflicts = max((line.shared_conflicts for line in counted.values()), default=0)
    rows = [
        _line(number, code, counted.get(number), hottest, most_conflicts)
        for number, code in enumerate(kernel.source.splitlines(), 1)
    ]
    head = ("line", "sectors", "sectors/request", "bank conflicts", "source")
    return f"<details open><summary>per line</summary>{_table(head, rows)}</details>"


def _line(number, code, counts, hottest, most_conflicts):
    cells = [_cell("")] * 3
    if counts:
        sectors = _sectors(counts)
        requests = counts.load_requests + counts.cp_async_requests + counts.store_requests
        cells[0] = _bar(sectors, hottest, ORANGE)
        cells[1] = _cell(text.ratio(sectors, requests) if requests else "")
        cells[2] = _bar(counts.shared_conflicts, most_conflicts, VERMILLION)
    source = f'<td style="{CODE}">{html.escape(code)}</td>'
    return f"<tr>{_cell(number, 'opacity:.6')}{''.join(cells)}{source}</tr>"


def _bar(value, largest, colour):
    """A cell with the number over a bar of its share of the largest."""
    if not value:
        return _cell("")
    end = f"{100 * value / largest:.0f}%"
    heat = f"linear-gradient(90deg,rgba({colour},.55) {end},transparent {end})"
    return _cell(f"{value:,}", f"background:{heat}")


def _cell(content, style=""):
    return f'<td style="{CELL};{style}">{content}</td>'


def _sectors(counts):
    return counts.load_sectors + counts.store_sectors + counts.cp_async_sectors


def _row(name, cells):
    numbers = "".join(f'<td style="{CELL}">{html.escape(cell)}</td>' for cell in cells)
    return f'<tr><th style="padding:1px 8px;text-align:left">{html.escape(name)}</th>{numbers}</tr>'


def _table(head, rows):
    titles = "".join(f'<th style="{_align(title)}">{html.escape(title)}</th>' for title in head)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _align(title):
    side = "left" if title in ("array", "source") else "right"
    return f"padding:1px 8px;text-align:{side}"
