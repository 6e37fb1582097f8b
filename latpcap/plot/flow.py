"""What does Wireshark's flow graph show of these streams, and why did it take so long?

Reads the `events` and `causes` tables of one or a few streams; gives a picture that can be shown, saved or
drawn on given axes; knows nothing of captures. Rows and waits are computed in flow_rows.py, places in
flow_layout.py, lines in flow_draw.py, bytes in figure.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from latpcap.plot import figure as paper
from latpcap.plot import flow_draw, flow_layout, flow_rows
from latpcap.plot.flow_rows import FlowMark, FlowRow

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 9.0  # size of the letters on our own figure: 12.5 pixels at 100 pixels per inch
_EVENTS = (
    "frame",
    "time",
    "stream",
    "from_client",
    "src",
    "sport",
    "dst",
    "dport",
    "seq",
    "ack",
    "len",
    "flags",
    "release_frame",
)
_OPTIONAL = ("from_client", "release_frame")
_CAUSES = ("start", "end", "cause", "parent", "owner", "from_frame", "to_frame", "confidence")


class FlowGraph:
    """Who sent what to whom, and where did the time go?

    The picture is Wireshark's Statistics > Flow Graph for TCP: a row per packet with its time in seconds, an
    arrow from sender to receiver with flags and payload length, and `Seq = S Ack = A` (relative numbers).
    Added to it: every wait of some length is a coloured band at the lifeline of the side that owns it, with
    its length in ms and its cause; the packet that ended it and the one it freed have the same colours.

    Made by `from_tables`. The constructor takes finished values: `nodes` are titles, `rows` and `marks` index
    them; `note` is a sentence on what is not shown (empty if nothing), `status` a line of counts.

    Attributes: `nodes`, `rows`, `marks`, `title`, `note`, `status` as given; after `plot`: `ax_`, the axes,
    and `figure_`, their figure.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        nodes: Sequence[str],
        rows: Sequence[FlowRow],
        marks: Sequence[FlowMark] = (),
        title: str = "",
        note: str = "",
        status: str = "",
    ) -> None:
        if not rows:
            raise ValueError("a flow graph needs at least one packet")
        self.nodes = tuple(nodes)
        self.rows = tuple(rows)
        self.marks = tuple(sorted(marks, key=lambda mark: mark.lower))
        self.title = title
        self.note = note
        self.status = status or f"{len(self.nodes)} node(s), {len(self.rows)} item(s)"

    @classmethod
    def from_tables(
        cls,
        events: pa.Table,
        causes: pa.Table | None = None,
        *,
        title: str,
        frames: tuple[int, int] | None = None,
        max_rows: int = 60,
        mark_ms: float = 5.0,
        start_ns: int | None = None,
    ) -> Self:
        """How do the tables of one or a few streams become a picture?

        `events`: their rows of the events table in frame order; `causes`: the rows of the causes table of
        their exchanges (None: no causes known). Times are seconds since `start_ns`, in ns since the epoch
        (Wireshark: the capture's first frame; default: the first of `events`). Waits of at least `mark_ms`
        milliseconds are marked. `frames=(a, b)` shows frames a to b only. At most `max_rows` packets are
        shown; if there are more, the picture says how many are missing and how to see them. A null payload
        length shows no `Len`, a null `seq` or `ack` no number, a null `confidence` no "probable";
        `from_client` and `release_frame` may be missing altogether. Raises ValueError if there is no packet
        to show, or if an option or a cause's name makes no sense; KeyError for a missing column.
        """
        if max_rows < 1:
            raise ValueError(f"max_rows is {max_rows}, but at least 1 packet has to be shown")
        if not mark_ms > 0:
            raise ValueError(f"mark_ms is {mark_ms}, but must be more than 0 ms")
        table, first_ns = _chosen(events, frames)
        shown = _records(table.slice(0, max_rows), _EVENTS, _OPTIONAL)
        nodes, rows = flow_rows.rows_of(shown, first_ns if start_ns is None else start_ns)
        reasons = [] if causes is None else _records(_around(causes, shown), _CAUSES)
        rows, marks = flow_rows.mark(shown, rows, reasons, mark_ms)
        return cls(
            nodes=nodes,
            rows=rows,
            marks=marks,
            title=title,
            note=_note(table, len(rows), max_rows),
            status=f"{len(nodes)} node(s), {len(rows)} of {events.num_rows} item(s); "
            f"waits of at least {mark_ms:g} ms are marked",
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """How do I draw it, on axes of mine or on a figure of its own?

        Only draws. On given axes everything is scaled to fit into them. Returns the graph itself, with `ax_`
        and `figure_`.
        """
        page = flow_layout.arrange(self.title, self.nodes, self.rows, self.marks)
        foot = flow_draw.footer(self.note, self.status, self.rows, self.marks, page.width)
        height = page.height + flow_draw.footer_height(foot)
        with paper.house_style():
            if ax is None:
                scale = _POINTS
                figure = paper.new_figure(page.width * scale / 72, height * scale / 72)
                ax = figure.add_axes((0, 0, 1, 1))
            else:
                figure = _root(ax)
                box = ax.get_position()
                inches = figure.get_size_inches()
                scale = min(box.width * inches[0] * 72 / page.width, box.height * inches[1] * 72 / height)
            ax.set_axis_off()
            ax.set_aspect("equal", adjustable="box", anchor="N")
            ax.set_xlim(0, page.width)
            ax.set_ylim(height, 0)
            pen = flow_draw.Pen(ax, scale)
            flow_draw.draw_body(pen, page, self.rows)
            flow_draw.draw_footer(pen, page.height, foot)
        self.ax_, self.figure_ = ax, figure
        return self

    def save(self, path: str | Path, *, dpi: float = 100) -> Self:
        """How do I put it into a ticket? Writes PNG, SVG or PDF, by the path's suffix; the same input gives
        the same bytes.

        Always a figure of its own, 8 inches wide or more: at the default `dpi`, pixels per inch, a PNG is 800
        pixels wide (take 200 or more for print). Raises ValueError for other suffixes, or if a PNG would be
        too high; OSError if the file cannot be written.
        """
        Path(path).write_bytes(self._render(paper.suffix_of(path), dpi))
        return self

    def _render(self, suffix: str, dpi: float) -> bytes:
        fresh = FlowGraph(
            nodes=self.nodes,
            rows=self.rows,
            marks=self.marks,
            title=self.title,
            note=self.note,
            status=self.status,
        ).plot()
        return paper.render(fresh.figure_, suffix, dpi)

    def _repr_png_(self) -> bytes:
        return self._render(".png", 100)

    def __repr__(self) -> str:
        return f"FlowGraph({self.title!r}: {self.status})"


def _root(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes given belong to no figure")
    return figure


def _chosen(events: pa.Table, frames: tuple[int, int] | None) -> tuple[pa.Table, int]:
    """The events of these frames, and the instant of the first event of all, in ns."""
    import pyarrow.compute as pc

    if events.num_rows == 0:
        raise ValueError("no TCP segment in the events table: there is nothing to draw")
    first_ns = int(_nanoseconds(events.slice(0, 1)["time"])[0].as_py())
    if frames is None:
        return events, first_ns
    low, high = frames
    if low > high:
        raise ValueError(f"frames=({low}, {high}) is empty: the first number is the larger one")
    frame = pc.field("frame")
    chosen = events.filter((frame >= low) & (frame <= high))
    if chosen.num_rows == 0:
        first, last = events["frame"][0], events["frame"][-1]
        raise ValueError(
            f"frames=({low}, {high}) holds no packet of these streams, which are in frames {first} to {last}"
        )
    return chosen, first_ns


def _around(causes: pa.Table, shown: Sequence[flow_rows.Record]) -> pa.Table:
    """The causes that touch the time shown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = min(event["time"] for event in shown), max(event["time"] for event in shown)
    before = pc.less_equal(_nanoseconds(causes["start"]), pa.scalar(high))
    after = pc.greater_equal(_nanoseconds(causes["end"]), pa.scalar(low))
    return causes.filter(pc.and_(before, after))


def _nanoseconds(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns", tz=column.type.tz)).cast(pa.int64())
    return column


def _records(table: pa.Table, names: Sequence[str], optional: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The table's rows as dicts of plain values, instants as integers of ns; columns that may be missing are
    None then.
    """
    missing = [name for name in names if name not in table.column_names and name not in optional]
    if missing:
        raise KeyError(f"column {missing[0]!r} is missing; the table has {', '.join(table.column_names)}")
    columns = {
        name: _nanoseconds(table[name]).to_pylist() if name in table.column_names else [None] * table.num_rows
        for name in names
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _note(table: pa.Table, shown: int, max_rows: int) -> str:
    """The sentence on rows that are not shown, or nothing. The next ones begin with the last one shown: a
    wait may follow it.
    """
    total = table.num_rows
    if shown == total:
        return ""
    column = table["frame"]
    begin = shown - 1 if max_rows > 1 else shown
    following = f"frames=({column[begin]}, {column[min(begin + max_rows, total) - 1]})"
    return (
        f"{total - shown} of {total} rows are not shown: "
        f"see the next ones with {following}, or all with max_rows={total}."
    )
