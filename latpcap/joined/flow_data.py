"""Selects the packets of joined captures for a `PointsGraph`. Reads the tables and packets; makes arrows and spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Protocol

from latpcap import arrays, words
from latpcap.format import escaped, shortest
from latpcap.joined.capture_point import Point
from latpcap.joined.clock import Clock
from latpcap.lazy import np, pa, pc
from latpcap.plot.flow.lifelines import Arrow, PointsGraph, Span
from latpcap.tables import NS_PER_MS

if TYPE_CHECKING:
    from latpcap.arrays import Array

MAX_ARROWS = 80
"""Upper bound on the packets of a picture."""
FLAGS = ((2, "SYN"), (1, "FIN"), (4, "RST"), (8, "PSH"), (16, "ACK"))


class Pair(Protocol):
    """The attributes of `Joined` that are read here, as this module must not import its package."""

    names: tuple[str, str]
    clock: Clock

    @property
    def points(self) -> tuple[Point, Point]:
        """The captures A and B."""

    def arrow(self, name: str) -> pa.Table:
        """Return one of the tables."""


def graph(
    joined: Pair, *, exchange: str | int | None, stream: int | None, frames: tuple[int, int] | None
) -> PointsGraph:
    """Return the graph of an exchange, or of frames of A. ValueError for an exchange or frame that does not exist."""
    packets = joined.arrow("packets")
    names = [escaped(name) for name in shortest(joined.names)]
    spans: list[Span] = []
    if frames is not None or (stream is not None and exchange is None):
        rows = _named(packets, stream, frames)
        title, subtitle, start = words.say("point_title"), "", None
    else:
        row = chosen(joined.arrow("exchanges"), exchange or "typical", stream)
        start, rows, title = row["start"], _of_exchange(packets, row), _title(row)
        thirds = {f"{name}_ms": row[f"{name}_ms"] for name in ("latency", "out", "far", "back")}
        subtitle = words.say("point_thirds", **thirds)
        if row["clock_error_ms"] is not None:
            subtitle += words.say("point_within", bound_ms=row["clock_error_ms"])
        spans = _spans(joined, row["a_exchange"])
    return _graph([joined], names, [rows], start, spans, title, subtitle)


def _title(row: dict[str, Any]) -> str:
    named = " ".join(word for word in (row["method"], row["target"]) if word)
    return named or words.say("point_exchange", exchange=row["a_exchange"])


def chained(
    legs: Sequence[Pair],
    row: dict[str, Any] | None,
    rows: Sequence[dict[str, Any]],
    *,
    stream: int | None,
    frames: tuple[int, int] | None,
) -> PointsGraph:
    """Return the graph of several points in a row.

    It shows an exchange (`row` of the chain, `rows` of its legs), or a stream or frames of A. ValueError for packets
    that do not exist.
    """
    names = [escaped(name) for name in shortest([legs[0].names[0], *(leg.names[1] for leg in legs)])]
    letters = ascii_lowercase[: len(names)]
    if row is None:
        rows_of_legs = [_named(legs[0].arrow("packets"), stream, frames)]
        key = "stream" if frames is None else "frame"
        for previous_leg, leg in pairwise(legs):
            numbers = arrays.filled(previous_leg.arrow("packets"), f"b_{key}", -1)[rows_of_legs[-1]]
            rows_of_legs.append(np.flatnonzero(np.isin(arrays.filled(leg.arrow("packets"), f"a_{key}", -2), numbers)))
        return _graph(legs, names, rows_of_legs, None, [], words.say("point_title"), "")
    ways = [f"{letter}_{next_letter}" for letter, next_letter in pairwise(letters)]
    spans_of_legs, out_ms = [], 0.0
    for leg, way, leg_row in zip(legs, ways, rows, strict=True):
        spans_of_legs.append([
            replace(span, begin_ms=span.begin_ms + out_ms, end_ms=span.end_ms + out_ms)
            for span in _spans(leg, leg_row["a_exchange"])
        ])  # fmt: skip
        out_ms += row[f"{way}_out_ms"]
    spans = _merged(spans_of_legs, [f"{way[0].upper()}-{way[2].upper()}" for way in ways])
    way_times = ((way, row[f"{way}_out_ms"] + row[f"{way}_back_ms"]) for way in ways)
    way_texts = [
        words.say("point_leg", way=f"{way[0].upper()}-{way[2].upper()}", way_ms=way_ms) for way, way_ms in way_times
    ]
    subtitle = words.say("point_legs", latency_ms=row["latency_ms"], ways=words.say("comma").join(way_texts),
                         far_ms=row["far_ms"], name=names[-1])  # fmt: skip
    rows_of_legs = [_of_exchange(leg.arrow("packets"), leg_row) for leg, leg_row in zip(legs, rows, strict=True)]
    return _graph(legs, names, rows_of_legs, rows[0]["start"], spans, _title(row), subtitle)


def _merged(legs: Sequence[Sequence[Span]], ways: Sequence[str]) -> list[Span]:
    """Merge the spans of all legs into one sequence: the client's part is taken from the first leg, the path of each
    leg from itself, the part beyond the last point from the last leg. The rest is unknown.
    """
    edges_ms = sorted(
        {round(instant, 6) for spans in legs for span in spans for instant in (span.begin_ms, span.end_ms)}
    )
    merged: list[Span] = []
    for begin_ms, end_ms in pairwise(edges_ms):
        middle_ms = (begin_ms + end_ms) / 2
        parts = [next((span for span in spans if span.begin_ms <= middle_ms <= span.end_ms), None) for spans in legs]
        candidates = [("client", "client", parts[0]), *(("between", *leg) for leg in zip(ways, parts, strict=True)),
                  ("server", "server", parts[-1])]  # fmt: skip
        span = next(
            (
                Span(begin_ms, end_ms, name, part.cause, part.grade)
                for place, name, part in candidates
                if part and part.place == place
            ),
            Span(begin_ms, end_ms, "unknown", "unknown", "unknown"),
        )
        previous = merged[-1] if merged else None
        if previous is not None and (previous.place, previous.cause) == (span.place, span.cause):
            span = replace(span, begin_ms=merged.pop().begin_ms)
        merged.append(span)
    return merged


def _named(packets: pa.Table, stream: int | None, frames: tuple[int, int] | None) -> Array:
    """Return the rows of a stream, or of a range of frames, of A."""
    numbers = arrays.filled(packets, "a_frame", -1)
    is_wanted = np.ones(packets.num_rows, bool) if frames is None else (numbers >= frames[0]) & (numbers <= frames[1])
    is_wanted &= True if stream is None else arrays.filled(packets, "a_stream", -1) == stream
    return np.flatnonzero(is_wanted)


def _of_exchange(packets: pa.Table, row: dict[str, Any]) -> Array:
    """Return the rows of an exchange: its connection's packets from its start to its end."""
    start, end = row["start"], row["start"] + round(row["latency_ms"] * NS_PER_MS)
    streams = {name: arrays.filled(packets, f"{name}_stream", -1) for name in ("a", "b")}
    times = {name: arrays.filled(packets, f"{name}_time", -1).astype(np.int64) for name in ("a", "b")}
    is_of_stream = (streams["a"] == row["a_stream"]) | (streams["b"] == row["b_stream"])
    slack = round(max(row["out_ms"], row["back_ms"], 0.0) * NS_PER_MS)
    earliest = np.where(times["a"] >= 0, times["a"], times["b"])
    latest = np.where(times["b"] >= 0, times["b"], times["a"])
    return np.flatnonzero(
        is_of_stream & (np.maximum(earliest, latest) >= start) & (np.minimum(earliest, latest) <= end + slack)
    )


def _graph(
    legs: Sequence[Pair],
    names: Sequence[str],
    rows_of_legs: Sequence[Array],
    start: int | None,
    spans: list[Span],
    title: str,
    subtitle: str,
) -> PointsGraph:
    """Return the graph of these rows of each leg's packets."""
    packet_count = sum(map(len, rows_of_legs))
    if not packet_count:
        raise ValueError("no packet of those is in either capture")
    dicts_of_legs = []
    for number, (leg, leg_rows) in enumerate(zip(legs, rows_of_legs, strict=True)):
        rows = _rows(leg.arrow("packets"), leg_rows[:MAX_ARROWS])
        for earlier_leg in legs[:number][::-1]:  # each leg's times are on its own first point's clock
            for row in rows:
                for name in ("a_time", "b_time"):
                    if row[name] is not None:
                        times = np.array([row[name]])
                        index = np.searchsorted(earlier_leg.points[1].packets["time"], times)
                        row[name] += int(earlier_leg.clock.shift(index, times)[0])
        dicts_of_legs.append(rows)
    instants = [row[name] for rows in dicts_of_legs for row in rows for name in ("a_time", "b_time")]
    zero = start if start is not None else min(instant for instant in instants if instant is not None)
    arrows = []
    for number, (leg, rows) in enumerate(zip(legs, dicts_of_legs, strict=True)):
        typical = {up: _typical(leg.arrow("packets"), up) for up in ("a_to_b", "b_to_a")}
        arrows += [replace(_arrow(*leg.points, row, zero, typical), leg=number) for row in rows]
    arrows = sorted(arrows, key=lambda arrow: min(arrow.a_ms, arrow.b_ms))[:MAX_ARROWS]
    note = words.say("point_first", n=len(arrows), of=packet_count) if packet_count > MAX_ARROWS else ""
    last_ms = max(max(arrow.a_ms, arrow.b_ms) for arrow in arrows)
    spans = [span for span in spans if span.begin_ms <= last_ms]
    return PointsGraph(names, arrows, spans, title=title, subtitle=subtitle, note=note)


def _rows(packets: pa.Table, rows: Any) -> list[dict[str, Any]]:
    """These rows as dicts, with instants in ns."""
    table = packets.take(pa.array(rows))
    for name in ("a_time", "b_time"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.int64()))
    return table.to_pylist()


def chosen(exchanges: pa.Table, which: str | int, stream: int | None) -> dict[str, Any]:
    """Return the exchange by its pick (typical: the median, worst: the longest, first) or its number in A."""
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
    positions = {"typical": (table.num_rows - 1) // 2, "worst": table.num_rows - 1, "first": 0}
    if which not in positions:
        raise ValueError(f"no exchange {which!r}; known are {', '.join(positions)}, or a number")
    if which == "first":
        table = table.sort_by("start")
    return table.slice(positions[which], 1).to_pylist()[0]


def _spans(joined: Pair, exchange: int) -> list[Span]:
    """Return the parts of an exchange in order; consecutive parts of one place and cause are joined."""
    parts = joined.arrow("parts")
    spans: list[Span] = []
    now_ms = 0.0
    for row in parts.filter(pc.equal(parts["a_exchange"], exchange)).to_pylist():
        begin_ms, now_ms = now_ms, now_ms + row["duration_ms"]
        previous = spans[-1] if spans else None
        if previous is not None and (previous.place, previous.cause) == (row["place"], row["cause"]):
            begin_ms = spans.pop().begin_ms
        spans.append(Span(begin_ms, now_ms, row["place"], row["cause"], row["grade"]))
    return spans


def _typical(packets: pa.Table, direction: str) -> float:
    """Return the median delay of a direction in ms; 0 where none is known."""
    delays = packets.filter(pc.equal(packets["direction"], direction))["delay_ms"]
    median = pc.approximate_median(delays).as_py()
    return float(median or 0.0)


def _arrow(a: Point, b: Point, row: dict[str, Any], zero: int, typical: dict[str, float]) -> Arrow:
    up = row["direction"] == "a_to_b"
    times_ms = {
        name: None if row[f"{name}_time"] is None else (row[f"{name}_time"] - zero) / NS_PER_MS for name in ("a", "b")
    }
    delay_ms = typical[row["direction"]] * (1 if up else -1)
    a_ms = times_ms["a"] if times_ms["a"] is not None else (times_ms["b"] or 0.0) - delay_ms
    b_ms = times_ms["b"] if times_ms["b"] is not None else a_ms + delay_ms
    point, frame = (a, row["a_frame"]) if row["a_frame"] is not None else (b, row["b_frame"])
    return Arrow(up, a_ms, b_ms, row["a_frame"], row["b_frame"], row["fate"], _text(point, frame))


def _text(point: Point, frame: int) -> str:
    packet = point.packets.row(int(point.rows_of(np.array([frame], np.uint64))[0]))
    flags = ", ".join(name for bit, name in FLAGS if packet["flags"] & bit)
    return f"{flags} {int(packet['len']):,} B" if packet["len"] else flags
