"""Events and causes of a few packets, written by hand, and what a flow graph makes of them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pyarrow as pa

from latpcap.options import FlowOptions
from latpcap.plot import FlowGraph
from latpcap.plot.pen import Ink, extent

START = 1_795_229_413_110_206_000
C, S = ("192.168.0.2", 53992), ("192.168.0.30", 8080)
STAMP = pa.timestamp("ns", tz="UTC")
Row = tuple[float, bool, str | None, int, int, int | None]
# frame 549 and its neighbours in nginx-latency.pcap: ms since START, from client, flags, len, seq, ack
STALL: list[Row] = [
    (3.966, True, "PSH, ACK", 43, 44, 851),
    (5.074, False, "PSH, ACK", 238, 851, 87),
    (47.671, True, "ACK", 0, 87, 1089),
    (47.675, False, "PSH, ACK", 612, 1089, 87),
    (47.763, True, "ACK", 0, 87, 1701),
]


def events_of(rows: list[Row], *, stream: int = 24, client: Any = C, server: Any = S, frame: int = 1) -> pa.Table:
    records = []
    for number, (ms, forward, flags, length, seq, ack) in enumerate(rows):
        (src, sport), (dst, dport) = (client, server) if forward else (server, client)
        records.append(
            {
                "frame": frame + number,
                "time": START + round(ms * 1e6),
                "stream": stream,
                "from_client": forward,
                "src": src,
                "sport": sport,
                "dst": dst,
                "dport": dport,
                "seq": seq,
                "ack": ack,
                "len": length,
                "flags": flags,
                "release_frame": None,
            }
        )
    table = pa.Table.from_pylist(records)
    place = table.schema.get_field_index("time")
    table = table.set_column(place, "time", table["time"].cast(STAMP))
    place = table.schema.get_field_index("release_frame")
    return table.set_column(place, "release_frame", table["release_frame"].cast(pa.uint64()))


def causes_of(*rows: tuple[float, float, str, str, str | None, int, int, float]) -> pa.Table:
    names = ("start", "end", "cause", "owner", "parent", "from_frame", "to_frame", "confidence")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    types = (STAMP, STAMP, pa.string(), pa.string(), pa.string(), pa.uint64(), pa.uint64(), pa.float64())
    arrays = []
    for name, values, kind in zip(names, columns, types, strict=True):
        values = [START + round(v * 1e6) for v in values] if name in ("start", "end") else list(values)  # type: ignore[operator]
        arrays.append(pa.array(values, type=kind))
    return pa.table(dict(zip(names, arrays, strict=True)))


STALL_CAUSES = causes_of(
    (3.966, 5.074, "server_think", "server", None, 1, 2, 0.95),
    (5.074, 47.671, "delayed_ack", "client", "nagle", 2, 3, 0.98),
    (47.671, 47.675, "nagle", "server", None, 3, 4, 0.98),
)


def graph(rows: list[Row] = STALL, causes: pa.Table | None = STALL_CAUSES, **options: Any) -> FlowGraph:
    start_ns = options.pop("start_ns", None)
    picked = FlowOptions(**options)
    return FlowGraph.from_tables(events_of(rows), causes, title="nginx-latency.pcap", start_ns=start_ns, options=picked)


def ink_of(ax: Any) -> Ink:
    (sheet,) = ax.artists
    ink: Ink = sheet.ink
    return ink


def assert_legible(drawn: Any) -> None:
    """No text leaves the picture or lies on another."""
    drawn.figure_.set_dpi(100)
    drawn.figure_.canvas.draw()
    renderer = drawn.figure_.canvas.get_renderer()
    boxes = [(word.text, extent(renderer, word, drawn.ax_.transData)) for word in ink_of(drawn.ax_).words]
    width, height = drawn.figure_.canvas.get_width_height()
    for words, (x0, y0, x1, y1) in boxes:
        assert x0 >= 0 and y0 >= 0 and x1 <= width and y1 <= height, words
    for (one, a), (other, b) in combinations(boxes, 2):
        over = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        assert min(over) <= 0.5, f"{one!r} lies on {other!r}"  # half a pixel of rounding


def waits(picture: FlowGraph) -> list[tuple[int, int, str]]:
    return [(picture.rows[m.upper].frame, picture.rows[m.lower].frame, m.text) for m in picture.marks]
