"""Which packets of two joined captures does a picture show, and what stands beside them?

Reads the tables and the raw packets of both; gives finished arrows and parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from latpcap import arrays, words
from latpcap.format import escaped, shortest
from latpcap.joined.point import Point
from latpcap.plot.points import Arrow, PointsGraph, Span

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 80
"""Packets on one picture."""
FLAGS = ((2, "SYN"), (1, "FIN"), (4, "RST"), (8, "PSH"), (16, "ACK"))


class Pair(Protocol):
    """What is read of two joined captures."""

    names: tuple[str, str]

    @property
    def points(self) -> tuple[Point, Point]:
        """A and B."""

    def arrow(self, name: str) -> pa.Table:
        """One of their tables."""


def graph(
    joined: Pair, *, exchange: str | int | None, stream: int | None, frames: tuple[int, int] | None
) -> PointsGraph:
    """The graph of an exchange, or of frames of A. ValueError for what is not there."""
    import numpy as np

    a, b = joined.points
    packets = joined.arrow("packets")
    names = (escaped(shortest(joined.names)[0]), escaped(shortest(joined.names)[1]))
    streams = {name: arrays.filled(packets, f"{name}_stream", -1) for name in ("a", "b")}
    left = {name: arrays.filled(packets, f"{name}_time", -1).astype(np.int64) for name in ("a", "b")}
    spans: list[Span] = []
    if frames is not None or (stream is not None and exchange is None):
        numbers = arrays.filled(packets, "a_frame", -1)
        mine = np.ones(packets.num_rows, bool) if frames is None else (numbers >= frames[0]) & (numbers <= frames[1])
        mine &= True if stream is None else streams["a"] == stream
        title = words.say("point_title")
        subtitle = ""
        start = None
    else:
        row = _chosen(joined.arrow("exchanges"), exchange or "typical", stream)
        start, end = row["start"], row["start"] + round(row["latency_ms"] * 1e6)
        mine = (streams["a"] == row["a_stream"]) | (streams["b"] == row["b_stream"])
        slack = round(max(row["out_ms"], row["back_ms"], 0.0) * 1e6)
        earliest = np.where(left["a"] >= 0, left["a"], left["b"])
        latest = np.where(left["b"] >= 0, left["b"], left["a"])
        mine &= (np.maximum(earliest, latest) >= start) & (np.minimum(earliest, latest) <= end + slack)
        named = " ".join(word for word in (row["method"], row["target"]) if word)
        title = named or words.say("point_exchange", exchange=row["a_exchange"])
        thirds = {f"{name}_ms": row[f"{name}_ms"] for name in ("latency", "out", "far", "back")}
        subtitle = words.say("point_thirds", **thirds)
        if row["clock_error_ms"] is not None:
            subtitle += words.say("point_within", bound_ms=row["clock_error_ms"])
        spans = _spans(joined, row["a_exchange"])
    rows = np.flatnonzero(mine)
    if not len(rows):
        raise ValueError("no packet of those is in either capture")
    note = words.say("point_first", n=MOST, of=len(rows)) if len(rows) > MOST else ""
    shown = _rows(packets, rows[:MOST])
    typical = {up: _typical(packets, up) for up in ("a_to_b", "b_to_a")}
    zero = start if start is not None else min(t for r in shown for t in (r["a_time"], r["b_time"]) if t is not None)
    arrows = [_arrow(a, b, row, zero, typical) for row in shown]
    last = max(max(one.a_ms, one.b_ms) for one in arrows)
    spans = [span for span in spans if span.begin_ms <= last]
    return PointsGraph(names, arrows, spans, title=title, subtitle=subtitle, note=note)


def _rows(packets: pa.Table, rows: Any) -> list[dict[str, Any]]:
    """These rows with instants as ns."""
    import pyarrow as pa

    table = packets.take(pa.array(rows))
    for name in ("a_time", "b_time"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.int64()))
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def _chosen(exchanges: pa.Table, which: str | int, stream: int | None) -> dict[str, Any]:
    """The exchange that is meant: the median, the longest, the first, or a number of A's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if stream is not None:
        exchanges = exchanges.filter(pc.equal(exchanges["a_stream"], stream))
    if not exchanges.num_rows:
        raise ValueError("no exchange is whole in both captures")
    table = exchanges.set_column(
        exchanges.column_names.index("start"), "start", exchanges["start"].cast(pa.int64())
    ).sort_by("latency_ms")
    if isinstance(which, int):
        rows: list[dict[str, Any]] = table.filter(pc.equal(table["a_exchange"], which)).to_pylist()
        if not rows:
            raise ValueError(f"exchange {which} of A is not whole in both captures")
        return rows[0]
    places = {"typical": (table.num_rows - 1) // 2, "worst": table.num_rows - 1, "first": 0}
    if which not in places:
        raise ValueError(f"no exchange {which!r}; known are {', '.join(places)}, or a number")
    if which == "first":
        table = table.sort_by("start")
    row: dict[str, Any] = table.slice(places[which], 1).to_pylist()[0]
    return row


def _spans(joined: Pair, exchange: int) -> list[Span]:
    """The parts of an exchange, one after the other; those of one place and cause that follow each other as one."""
    import pyarrow.compute as pc

    parts = joined.arrow("parts")
    found: list[Span] = []
    now = 0.0
    for row in parts.filter(pc.equal(parts["a_exchange"], exchange)).to_pylist():
        begin, now = now, now + row["duration_ms"]
        last = found[-1] if found else None
        if last is not None and (last.place, last.cause) == (row["place"], row["cause"]):
            begin = found.pop().begin_ms
        found.append(Span(begin, now, row["place"], row["cause"], row["grade"]))
    return found


def _typical(packets: pa.Table, direction: str) -> float:
    """The median delay of a direction in ms; 0 where none is known."""
    import pyarrow.compute as pc

    mine = packets.filter(pc.equal(packets["direction"], direction))["delay_ms"]
    median = pc.approximate_median(mine).as_py()
    return float(median or 0.0)


def _arrow(a: Point, b: Point, row: dict[str, Any], zero: int, typical: dict[str, float]) -> Arrow:
    up = row["direction"] == "a_to_b"
    at = {name: None if row[f"{name}_time"] is None else (row[f"{name}_time"] - zero) / 1e6 for name in ("a", "b")}
    moved = typical[row["direction"]] * (1 if up else -1)
    a_ms = at["a"] if at["a"] is not None else (at["b"] or 0.0) - moved
    b_ms = at["b"] if at["b"] is not None else a_ms + moved
    point, frame = (a, row["a_frame"]) if row["a_frame"] is not None else (b, row["b_frame"])
    return Arrow(up, a_ms, b_ms, row["a_frame"], row["b_frame"], row["fate"], _text(point, frame))


def _text(point: Point, frame: int) -> str:
    import numpy as np

    packet = point.packets.row(int(point.rows_of(np.array([frame], np.uint64))[0]))
    flags = ", ".join(name for bit, name in FLAGS if packet["flags"] & bit)
    return f"{flags} {int(packet['len']):,} B" if packet["len"] else flags
