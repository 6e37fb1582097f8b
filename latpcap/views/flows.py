"""Selects the packets of a flow graph of a capture or a stream.

Reads a view's tables, and the file again for packets that the tables do not have; returns a `FlowGraph`, which
`latpcap.plot` draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, get_args

from latpcap import arrays, bars, words
from latpcap.errors import NoSuchRowError
from latpcap.findings.evidence import names_of
from latpcap.format import requested
from latpcap.lazy import np, pa, pc
from latpcap.options import FlowOptions, Flows, Pick, TableName
from latpcap.tables import SETUP, HasTables, Needed, TableSlice, of_stretches, read_stretches, with_pushes
from latpcap.user_waits.servers import find_servers, servers_of
from latpcap.views.answer_columns import Exchanges, Streams

if TYPE_CHECKING:
    from latpcap.plot.flow.graph import FlowGraph
    from latpcap.views.recording import Recording
    from latpcap.views.view import View

PICKS: dict[Pick, str] = {"worst": "flow_worst", "typical": "flow_typical", "first": "flow_first"}
"""Words that choose an exchange, each with the id of its name in a title."""
FLOWS: tuple[Flows, ...] = get_args(Flows)
MAX_DRAWN = 1 << 20
"""Upper bound on the packets read for a picture; its pages have far fewer rows."""
_PICKED = ("exchange", "index", "stream", "complete", "latency_ms", "start", "protocol", "method",
           "request_first_frame", "request_last_frame", "response_last_frame")  # fmt: skip
"""Columns of stretches that select an exchange and bound its frames."""


class Around:
    """A file of which a flow graph is drawn. `read` opens it for one need: first to pick the exchange, then for its
    stream. `drawn` is false for tshark's text, which has all packets.
    """

    def __init__(self, read: Callable[[Needed], Recording], *, drawn: bool = False):
        self._read, self._drawn = read, drawn

    def flow_graph(
        self, *, exchange: int | Pick | None, server: str | None = None, flows: Flows = "tcp", **settings: Any
    ) -> FlowGraph:
        """Draw as `Capture.flow_graph`; `settings` are the fields of `FlowOptions`."""
        from latpcap.plot.flow.pagination import EVENTS
        from latpcap.views import projection

        options = FlowOptions(**settings)
        if exchange is None:
            first = _First(MAX_DRAWN if self._drawn and options.frames is None else None)
            whole_tables: tuple[TableName, ...] = ("causes", "exchanges", "connects", "gaps", "pushes")
            capture = self._read({"events": TableSlice(EVENTS, first), **dict.fromkeys(whole_tables, TableSlice(None))})
            return graph(capture, capture, options, flows=flows, total=first.total)
        bars.expect(2)
        columns: tuple[str, ...] = _PICKED
        streams_too: dict[TableName, TableSlice] = {}
        if isinstance(exchange, str):
            columns, streams_too = (*_PICKED, *Exchanges.COLUMNS), {"streams": TableSlice(Streams.COLUMNS)}
        picked_from = self._read(
            {"exchanges": TableSlice(columns), "connects": TableSlice(None), "gaps": TableSlice(None), **streams_too}
        )
        row = chosen(picked_from, exchange, server)
        del picked_from
        capture = self._read(projection.of_stream(row["stream"]))
        return graph(capture, capture, options, flows=flows, exchange=exchange, row=row)


class _First:
    """Masks the first `max_rows` rows (None: all) of consecutive batches, and counts all rows."""

    def __init__(self, max_rows: int | None):
        self._max_rows, self.total = max_rows, 0

    def __call__(self, rows: pa.Table) -> pa.ChunkedArray:
        room = rows.num_rows if self._max_rows is None else self._max_rows - self.total
        self.total += rows.num_rows
        return arrays.column(np.arange(rows.num_rows) < room)


def graph(
    capture: Recording,
    view: View,
    options: FlowOptions,
    *,
    stream: int | None = None,
    flows: Flows = "tcp",
    exchange: int | Pick | None = None,
    server: str | None = None,
    lang: str | None = None,
    row: dict[str, Any] | None = None,
    total: int | None = None,
) -> FlowGraph:
    """Return the flow graph of the packets of a view of this capture.

    `view` is the capture, a part of it, or its `stream`. `exchange` is one of `PICKS` or a number: of the table
    `exchanges` for a capture, counted from 0 on it for a stream. A word picks from the requests of one server:
    `server`, or the one that the answer names. The exchange's packets are shown, and the ACK after them. `row` is the
    exchange's row where it is known (`pick`). `total` is the number of packets, where the view has only the first ones.
    ValueError for invalid options, IndexError where there is no such exchange.
    """
    from latpcap.plot import figure

    with words.language(lang), words.language(figure.drawn_in()):
        if exchange is not None and row is None and flows == "tcp" and options.frames is None:
            row = (
                pick(read_stretches(view), exchange, "index") if stream is not None else chosen(view, exchange, server)
            )
        return _graph(capture, view, stream, flows, exchange, options, row, total)


def _graph(
    capture: Recording, view: View, stream: int | None, flows: Flows, exchange: int | Pick | None,
    options: FlowOptions, row: dict[str, Any] | None, total: int | None,
) -> FlowGraph:  # fmt: skip
    from latpcap.plot.flow.graph import FlowGraph

    if flows not in FLOWS:
        raise ValueError(f"flows={flows!r} is not one of {', '.join(FLOWS)}")
    events, causes, exchanges = view.arrow("events"), of_stretches(view.arrow("causes")), read_stretches(view)
    title = [view.title]
    if flows != "tcp":
        if stream is not None or exchange is not None:
            raise ValueError(f"flows={flows!r} is for a capture, not for a stream or an exchange")
        if capture.display_filter is not None:
            raise ValueError(f"flows={flows!r} takes no display filter: filters let TCP segments pass only")
        return _other(capture, flows, options)
    if exchange is not None:
        if options.frames is not None:
            raise ValueError("an exchange has its own frames: give exchange or frames, not both")
        assert row is not None
        if stream is None:
            title.append(f"tcp.stream eq {row['stream']}")
        events, exchanges = (_where(table, "stream", [row["stream"]]) for table in (events, exchanges))
        if row["protocol"] != SETUP:  # for a request, leave out pauses and set-ups of its stream
            exchanges = _where(view.arrow("exchanges"), "stream", [row["stream"]])
        causes = _where(causes, "exchange", exchanges["exchange"].to_pylist())
        options = options._replace(frames=(row["request_first_frame"], _last_frame(events, row)))
        if isinstance(exchange, str):
            title.append(words.say(PICKS[exchange]))
    else:
        causes = of_stretches(view.arrow("causes"), pushes=True)
        exchanges = with_pushes(exchanges, view.arrow("pushes"))
    return FlowGraph.from_tables(
        events,
        causes,
        exchanges,
        title=", ".join(title),
        options=options,
        start_ns=capture.zero_ns,
        digits=capture.digits,
        before=dict(_before(capture, events, options.frames)) if options.time == "delta" else None,
        total=total,
    )


def chosen(view: HasTables, which: int | Pick, server: str | None = None) -> dict[str, Any]:
    """Return the row of the exchange that a number or word selects. A word picks from the requests of this server, or
    of the one that the answer names, if it has complete ones. ValueError for an unknown server or word.
    """
    table = read_stretches(view)
    if isinstance(which, str) and which in PICKS:
        of_one = _of_server(view.arrow("streams"), table, server)
        if server is not None or of_one.filter(of_one["complete"]).num_rows:
            table = of_one
    return pick(table, which)


def _of_server(streams: pa.Table, exchanges: pa.Table, server: str | None) -> pa.Table:
    """Return the requests of this server, or of the one that the answer begins with; all requests where no server has
    any.
    """
    servers = servers_of(streams, exchanges)
    if server is not None:
        servers = find_servers(server, servers, lambda candidate: names_of(candidate, {"streams": streams}))
    if not servers:
        return exchanges
    return exchanges.take(arrays.integers(servers[0].all_requests, "int64"))


def of_server(view: HasTables, server: str) -> str:
    """Return the display filter of this server's packets. ValueError for an unknown server."""
    streams = view.arrow("streams")
    servers = servers_of(streams, read_stretches(view))
    (named_server, *_) = find_servers(server, servers, lambda candidate: names_of(candidate, {"streams": streams}))
    family = "ipv6" if ":" in named_server.address else "ip"
    return f"{family}.addr == {named_server.address} and tcp.port == {named_server.port}"


def pick(exchanges: pa.Table, which: int | Pick, counted_by: str = "exchange") -> dict[str, Any]:
    """Return the row of `exchanges` that a number or word selects. ValueError for an unknown word, IndexError for
    none.
    """
    table = exchanges.select(_PICKED)
    table = table.set_column(_PICKED.index("start"), "start", table["start"].cast("int64"))
    rows: list[dict[str, Any]]
    if not isinstance(which, str):
        is_storable = 0 <= which < 1 << 63  # Arrow cannot compare larger numbers
        rows = table.filter(pc.equal(table[counted_by], which)).to_pylist() if is_storable else []
        rows = [row for row in rows if _is_counted(row, counted_by)]
        if not rows:
            raise NoSuchRowError(f"no exchange {which}: there are {len(table):,}, counted from 0")
        return rows[0]
    if which not in PICKS:
        raise ValueError(f"exchange={which!r} is neither a number nor one of {', '.join(PICKS)}")
    table = table.filter(table["complete"])
    if not len(table):
        raise NoSuchRowError(f"no {which} exchange: there is no complete one here")
    by: list[tuple[str, Any]] = [("latency_ms", "ascending"), ("exchange", "descending")]
    order = pc.sort_indices(table, [("start", "ascending"), ("exchange", "ascending")] if which == "first" else by)
    rank = {"first": 0, "worst": len(table) - 1}.get(which, (len(table) - 1) // 2)
    rows = table.take(order.slice(rank, 1)).to_pylist()
    return rows[0]


def _is_counted(row: dict[str, Any], counted_by: str) -> bool:
    """Return whether an index means this row: a pause has the index of the request after it, and does not count."""
    return counted_by == "exchange" or row["protocol"] != SETUP or row["method"] == "connect"


def _where(table: pa.Table, column: str, values: list[int]) -> pa.Table:
    return table.filter(pc.is_in(table[column], value_set=pa.array(values, table[column].type)))


def _last_frame(events: pa.Table, row: dict[str, Any]) -> int:
    """Return the exchange's last frame, or the next frame of its stream if that is a pure ACK of the other side."""
    last: int = row["response_last_frame"] or row["request_last_frame"]
    after = events.filter(pc.greater_equal(events["frame"], last)).select(["frame", "from_client", "len", "flags"])
    rows = after.slice(0, 2).to_pylist()
    if len(rows) == 2 and rows[1]["from_client"] != rows[0]["from_client"] and rows[1]["flags"] == "ACK":
        return rows[1]["frame"] if rows[1]["len"] == 0 else last
    return last


def _before(capture: Recording, events: pa.Table, frames: tuple[int, int] | None) -> Iterator[tuple[int, int]]:
    """Yield each frame of the events with the instant of the frame before it, TCP or not, by reading the file again."""
    before = [frame - 1 for frame in events["frame"].to_pylist() if not frames or frames[0] <= frame <= frames[1]]
    yield from ((record.frame + 1, record.time_ns) for record in capture.records(before))


def _other(capture: Recording, flows: Flows, options: FlowOptions) -> FlowGraph:
    """Return the graph of the frames that are not TCP, and for `flows` "all" or "any" of all frames, in file order.

    The text of "any" has tshark's columns Protocol and Info, where latpcap knows them.
    """
    from latpcap.plot.flow.graph import FlowGraph
    from latpcap.plot.flow.packet_rows import Clock
    from latpcap.reading import other_packets

    low, high = options.frames or (1, capture.frames)
    segments = capture.arrow("events")
    tcp_frames = set(segments["frame"].to_pylist())
    frames = [number for number in range(max(1, low), min(high, capture.frames) + 1) if number not in tcp_frames]
    packets = list(other_packets.packets(capture.records(frames), only_icmp=flows == "icmp")) if frames else []
    rows = [_as_tshark(packet) for packet in packets if packet["info"] and packet["protocol"] == "ICMP"]
    if flows != "icmp":
        packets += _segments(capture, low, high)
        packets.sort(key=lambda packet: packet["frame"])
    if not packets:
        missing = "ICMP packet" if flows == "icmp" else "frame"
        raise ValueError(f"there is no {missing} in {capture.title}: there is nothing to draw")
    before = {}
    if options.time == "delta":
        before = {
            record.frame + 1: record.time_ns for record in capture.records([packet["frame"] - 1 for packet in packets])
        }
    return FlowGraph.from_packets(
        packets,
        of_stretches(capture.arrow("causes"), pushes=True) if flows != "icmp" else None,
        with_pushes(read_stretches(capture), capture.arrow("pushes")) if flows != "icmp" else None,
        text_packets=rows if flows == "icmp" else _with_info(capture, packets) if flows == "any" else None,
        title=f"{capture.title}, {words.say('flow_icmp' if flows == 'icmp' else 'flow_all')}",
        clock=Clock(capture.zero_ns or 0, capture.digits, options.time, before),
        options=options,
    )


def _as_tshark(packet: dict[str, Any]) -> dict[str, Any]:
    """Return an ICMP echo packet as tshark's flow graph writes it."""
    comment = f"{packet['protocol']}: {packet['info']}"
    return packet | {"label": packet["info"], "comment": comment, "dport": packet["code"]}


def _with_info(capture: Recording, packets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the packets with tshark's columns Protocol and Info; latpcap's own text where these are not known."""
    from latpcap.reading import info_column

    texts = info_column.info_texts(capture)
    labelled = []
    for packet in packets:
        protocol, text = texts.get(packet["frame"]) or (packet.get("protocol"), packet.get("info"))
        labelled.append(packet | {"label": text, "comment": f"{protocol}: {text}"} if text else packet)
    return labelled


def _segments(capture: Recording, low: int, high: int) -> list[dict[str, Any]]:
    """Return the TCP segments as packets with labels; the first segment of an HTTP message has its first line as
    label.
    """
    from latpcap.plot.flow.packet_rows import comment, label
    from latpcap.plot.flow.pagination import packets_of

    events = capture.arrow("events")
    inside = pc.and_(pc.greater_equal(events["frame"], low), pc.less_equal(events["frame"], high))
    columns = ["protocol", "method", "target", "status", "request_first_frame", "response_first_frame"]
    begins: dict[int, tuple[str, str]] = {}
    for row in capture.arrow("exchanges").select(columns).to_pylist():
        if row["method"]:
            request = requested(row["method"], (row["target"] or "")[:40])
            begins[row["request_first_frame"]] = row["protocol"].upper(), request
        if row["status"] and row["response_first_frame"]:
            begins[row["response_first_frame"]] = row["protocol"].upper(), str(row["status"])
    packets = packets_of(events.filter(inside))
    for packet in packets:
        remark = comment(packet["flags"], packet["seq"], packet["ack"])
        letters = packet["flags"]
        if packet["frame"] in begins:
            protocol, raw = begins[packet["frame"]]
            letters = "".join(letter if letter.isprintable() else "?" for letter in raw)
            remark = f"{protocol}: {remark}"
        packet |= {"label": label(letters, packet["len"]), "comment": remark}
    return packets
