"""HTML of results in notebooks, made of texts and data frames.

Texts from captures and file names are escaped. Colours are dark on white in dark notebooks, too. Nothing is fetched,
and without scripts (an untrusted notebook) only sorting is missing.
"""

from __future__ import annotations

from html import escape
from typing import Any

from latpcap.format import printable
from latpcap.lazy import pd

MAX_ROWS = 20
"""Rows of a table that are shown, unless `rows` says otherwise."""
MAX_LETTERS = 80
"""Upper bound on the letters of a cell."""

_INK = "background:#fff;color:#222;"
_CARD = f"{_INK}border:1px solid #c8c8c8;border-radius:4px;padding:8px 12px;max-width:76em;overflow-x:auto"
_MONO = "font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;"
_PRE = f"{_INK}{_MONO}margin:6px 0 0;padding:0;white-space:pre-wrap;word-break:normal;font-size:12px;line-height:1.35"
_CELL = "padding:1px 8px;white-space:nowrap;border:0;"
_HEAD = f"{_CELL}border-bottom:1px solid #888;font-weight:bold;"
_ROW = f'<tr style="{_INK}">'
"""Begin of a row, with colours: notebooks colour every second row, and the row below the mouse, by their theme."""
_SORT = (
    "var h=event.target.closest('th');if(!h)return;var t=h.closest('table'),b=t.tBodies[0],n=h.cellIndex,"
    "d=t.dataset.by==n?-t.dataset.way:-1;t.dataset.by=n;t.dataset.way=d;"
    "Array.from(b.rows).sort(function(x,y){var p=x.cells[n],q=y.cells[n],u=p.dataset.v,v=q.dataset.v;"
    "return d*(u!==undefined&&v!==undefined?u-v:p.textContent.localeCompare(q.textContent));})"
    ".forEach(function(r){b.appendChild(r);});"
)
"""Handles a click on a table's head: sorts the rows by that column, by the cells' data-v if they have one, else by
their text. A second click reverses the order. The script holds no data of a capture.
"""


def card(title: str, *bodies: str) -> str:
    """Return a box with a title, which is escaped, and bodies, which are HTML made by the functions below."""
    return f'<div style="{_CARD}"><b style="color:#222">{escape(_safe(title, 200))}</b>{"".join(bodies)}</div>'


def text(lines: str) -> str:
    """Return lines of text in a monospaced font."""
    return f'<pre style="{_PRE}">{escape(lines)}</pre>'


def more(summary: str, *bodies: str) -> str:
    """Return bodies that are folded until the summary is clicked."""
    head = f'<summary style="cursor:pointer;color:#444;margin-top:6px">{escape(_safe(summary))}</summary>'
    return f'<details style="{_INK}">{head}{"".join(bodies)}</details>'


def table(frame: pd.DataFrame, *, rows: int = MAX_ROWS, sortable: bool = False) -> str:
    """Return the first rows of a data frame, and the number of the others. With `sortable` a click on a head sorts."""
    shown = frame.head(rows)
    hint = ' title="sort these rows" ' if sortable else " "
    pointer = "cursor:pointer;" if sortable else ""
    numeric = [_is_number(shown[name]) for name in shown.columns]
    sides = ["right" if number else "left" for number in numeric]
    heads = "".join(
        f'<th{hint}style="{_HEAD}{pointer}text-align:{side}">{escape(_safe(str(name)))}</th>'
        for name, side in zip(shown.columns, sides, strict=True)
    )
    body = "".join(
        _ROW + "".join(_cell(value, side) for value, side in zip(values, sides, strict=True)) + "</tr>"
        for values in shown.itertuples(index=False, name=None)
    )
    click = f' onclick="{escape(_SORT)}"' if sortable else ""
    rows_left_out = len(frame) - len(shown)
    foot = (
        f'<div style="{_INK}font-size:11px">… {rows_left_out:,} more row{"s" if rows_left_out > 1 else ""}</div>'
        if rows_left_out
        else ""
    )
    style = f"{_INK}border-collapse:collapse;font-size:12px;margin-top:6px"
    return f'<table style="{style}"><thead{click}>{_ROW}{heads}</tr></thead><tbody>{body}</tbody></table>{foot}'


def _is_number(column: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column)) and not pd.api.types.is_bool_dtype(column)


def _cell(value: Any, side: str) -> str:
    style = f'style="{_CELL}text-align:{side}"'
    if value is None or (not isinstance(value, (list, tuple, dict)) and _missing(value)):
        return f'<td data-v="-1e308" {style}></td>' if side == "right" else f"<td {style}></td>"
    if isinstance(value, bool):
        return f"<td {style}>{'yes' if value else 'no'}</td>"
    if side == "right":
        shown = f"{value:,.3f}" if isinstance(value, float) else str(value)  # ports and frames are not quantities
        return f'<td data-v="{float(value)!r}" {style}>{shown}</td>'
    return f"<td {style}>{escape(_safe(str(value)))}</td>"


def _missing(value: Any) -> bool:
    absent = pd.isna(value)
    return bool(absent) if isinstance(absent, bool) or getattr(absent, "shape", ()) == () else False


def _safe(text: str, max_letters: int = MAX_LETTERS) -> str:
    """Return the text with unprintable characters replaced, cut to `max_letters`."""
    text = printable(text)
    return text if len(text) <= max_letters else text[: max_letters - 1] + "…"
