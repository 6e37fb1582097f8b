"""Which fields can a display filter name, and how is each got from a `Source`?

A field that a segment may have twice (tcp.port) has two. Null: the segment has not got it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from latpcap.reading.filters.heads import BODIES, CHUNKS, NAMES, OTHERS
from latpcap.reading.filters.reassembly import NUMBERS
from latpcap.reading.filters.source import Column, Keyed, Source, between, mapped

if TYPE_CHECKING:
    import pyarrow as pa

MARKS = [
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "lost_segment",
    "ack_lost_segment",
    "duplicate_ack",
    "keep_alive",
    "keep_alive_ack",
    "window_update",
    "window_full",
    "zero_window",
    "zero_window_probe",
    "zero_window_probe_ack",
    "reused_ports",
]
"""tcp.analysis.* that are there or not; columns of `events` under the same names."""

FLAGS = {"fin": 0, "syn": 1, "reset": 2, "push": 3, "ack": 4, "urg": 5, "ece": 6, "cwr": 7, "ae": 8}


@dataclass(frozen=True)
class Field:
    """What kind of value, and how to get it.

    `kind`: "int" (with `bits`), "signed", "bool", "duration" and "instant" (both in ns), "ms" (also in ns), "seconds"
    (a float), "ipv4", "ipv6", "text", "bytes", "ether" (six bytes), "protocol" (bytes from its header on, without a
    value of its own), or "label": there or not, without a value. `shown`: it is read from the frames' bytes.
    """

    kind: str
    get: Callable[[Source], list[Column | Keyed]]
    meaning: str
    bits: int = 32
    shown: bool = False


def _one(name: str) -> Callable[[Source], list[Column | Keyed]]:
    return lambda s: [Column(s.column(name))]


def _both(*names: str) -> Callable[[Source], list[Column | Keyed]]:
    return lambda s: [Column(s.column(name)) for name in names]


def _nanos(name: str) -> Callable[[Source], list[Column | Keyed]]:
    return lambda s: [Column(s.nanos(name))]


def _frame(name: str) -> Callable[[Source], list[Column | Keyed]]:
    return lambda s: [Column(s.frames[name])]


def _header(name: str, version: int | None = None) -> Callable[[Source], list[Column | Keyed]]:
    """What the headers say beside the events, of one family of addresses."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow as pa
        import pyarrow.compute as pc

        values = source.headers[name]
        if version is None:
            return [Column(values)]
        ours = mapped(source.column("src"), lambda a: (":" in a) == (version == 6), "bool")
        return [Column(pc.if_else(ours, values, pa.scalar(None, pa.int64())))]

    return get


def _where(of: Callable[[Source], pa.ChunkedArray]) -> Callable[[Source], list[Column | Keyed]]:
    """A label from a column of truths."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow as pa
        import pyarrow.compute as pc

        return [Column(pc.if_else(of(source), True, pa.scalar(None, pa.bool_())))]

    return get


def _flags_are(mask: int, wanted: int) -> Callable[[Source], pa.ChunkedArray]:
    """Which segments have these of the flags under the mask."""

    def of(source: Source) -> pa.ChunkedArray:
        import pyarrow.compute as pc

        return pc.equal(pc.bit_wise_and(source.flags, mask), wanted)

    return of


def _acks_nothing(source: Source) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.and_(_flags_are(0x10, 0)(source), pc.not_equal(source.column("ack"), 0))


def _flag(bit: int) -> Callable[[Source], list[Column | Keyed]]:
    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow.compute as pc

        return [Column(pc.bit_wise_and(pc.shift_right(source.flags, bit), 1))]

    return get


def _modulo(name: str) -> Callable[[Source], list[Column | Keyed]]:
    """Wireshark shows 32 bits of a relative number."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow.compute as pc

        return [Column(pc.bit_wise_and(source.column(name), 0xFFFFFFFF))]

    return get


def _next_seq(source: Source) -> list[Column | Keyed]:
    import pyarrow.compute as pc

    ends = pc.not_equal(pc.bit_wise_and(source.flags, 3), 0).cast("int64")  # SYN and FIN count once, also together
    total = pc.add(pc.add(source.column("seq"), source.column("len").cast("int64")), ends)
    return [Column(pc.bit_wise_and(total, 0xFFFFFFFF))]


def _since_first(source: Source) -> list[Column | Keyed]:
    """Since the stream's first segment, which is `streams.start`."""
    import pyarrow.compute as pc

    streams = source.capture.arrow("streams")
    rows = pc.index_in(source.column("stream"), value_set=streams["stream"].combine_chunks())
    return [Column(pc.subtract(source.times, pc.take(streams["start"].cast("int64"), rows)))]


def _of_stream(name: str) -> Callable[[Source], list[Column | Keyed]]:
    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow.compute as pc

        streams = source.capture.arrow("streams")
        rows = pc.index_in(source.column("stream"), value_set=streams["stream"].combine_chunks())
        return [Column(pc.take(streams[name], rows))]

    return get


def _sack(side: str | None) -> Callable[[Source], list[Column | Keyed]]:
    """The edges of the blocks by frame, or (None) how many there are."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow as pa
        import pyarrow.compute as pc

        blocks = source.column("sack")
        if side is None:
            return [Column(pc.list_value_length(blocks))]
        table = source.events.select(["frame", "sack"]).filter(pc.is_valid(blocks)).combine_chunks()
        blocks = table["sack"].combine_chunks()
        edges = pc.bit_wise_and(pc.struct_field(pc.list_flatten(blocks), side), 0xFFFFFFFF)
        return [Keyed(pc.take(table["frame"], pc.list_parent_indices(blocks)), pa.chunked_array([edges]))]

    return get


def _address(version: int, *names: str) -> Callable[[Source], list[Column | Keyed]]:
    """Addresses of one family as words; null for the other."""

    def get(source: Source) -> list[Column | Keyed]:
        family = ":" if version == 6 else "."
        return [
            Column(mapped(source.column(n), lambda a: a if (":" in a) == (family == ":") else None, "string"))
            for n in names
        ]

    return get


def _http(frame: str, value: str | None, protocol: str = "http") -> Callable[[Source], list[Column | Keyed]]:
    """A value of the exchanges on the frame that completed the message."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow.compute as pc

        exchanges = getattr(source, protocol)
        table = exchanges.filter(pc.is_valid(exchanges[frame]))
        values = pc.is_valid(table[frame]).cast("int8") if value is None else table[value]
        return [Keyed(table[frame], values)]

    return get


def _dns(value: str | None) -> Callable[[Source], list[Column | Keyed]]:
    """A value of the lookups on the frame of the question and on that of the answer."""

    def get(source: Source) -> list[Column | Keyed]:
        return [*_http("request_in", value, "dns")(source), *_http("response_in", value, "dns")(source)]

    return get


def _dns_response(source: Source) -> list[Column | Keyed]:
    """0 on a question, 1 on an answer."""
    import pyarrow.compute as pc

    (requests,), (answers,) = (_http(frame, None, "dns")(source) for frame in ("request_in", "response_in"))
    return [Keyed(requests.frames, pc.multiply(requests.values, 0)), answers]  # type: ignore[union-attr]


def _messages(source: Source) -> list[Column | Keyed]:
    """A frame that completes a request or an answer of HTTP."""
    return [*_http("request_in", None)(source), *_http("response_in", None)(source)]


def _http_time(source: Source) -> list[Column | Keyed]:
    """From the frame that completed the request to the one that completed the answer."""
    import pyarrow.compute as pc

    table = source.http.filter(pc.is_valid(source.http["response_in"]))
    return [Keyed(table["response_in"], between(table, source.capture.unfiltered.arrow("events")))]


def _scale(source: Source) -> list[Column | Keyed]:
    """The window's factor: -1 without the handshake, -2 where one side does not scale; SYNs have none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = [_of_stream(name)(source)[0].values for name in ("client_wscale", "server_wscale", "completeness")]
    client, server, seen = whole
    answers = pc.not_equal(pc.bit_wise_and(seen.cast("int64"), 2), 0)
    own = pc.if_else(source.column("from_client"), client, server).cast("int64")
    both = pc.and_(pc.is_valid(client), pc.is_valid(server))
    factor = pc.fill_null(pc.shift_left(pa.scalar(1, pa.int64()), own), -1)
    factor = pc.if_else(pc.and_(answers, pc.invert(both)), -2, factor)
    syn = pc.equal(pc.bit_wise_and(source.flags, 2), 0)
    return [Column(pc.if_else(syn, factor, pa.scalar(None, pa.int64())))]


def _initial_rtt(source: Source) -> list[Column | Keyed]:
    """The handshake's round trip, on every segment about which Wireshark notes something else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    took = pc.round(pc.multiply(_of_stream("initial_rtt_ms")(source)[0].values, 1e6)).cast("int64")
    return [Column(pc.if_else(_noted(source), took, pa.scalar(None, pa.int64())))]


def _noted(source: Source) -> pa.ChunkedArray:
    """Segments about which Wireshark's analysis notes something."""
    import pyarrow.compute as pc

    more = [pc.is_valid(source.column(name)) for name in ("acks_frame", "bytes_in_flight", "push_bytes_sent")]
    return functools.reduce(pc.or_, [*more, pc.fill_null(_any_mark(source), False)])


def _fin(first: bool) -> Callable[[Source], list[Column | Keyed]]:
    """A FIN of the side that closed first, or of the other one."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow as pa

        events = source.capture.unfiltered.arrow("events").select(["frame", "stream", "from_client", "flags"])
        ends = mapped(events["flags"], lambda flags: "FIN" in flags, "bool")
        closer: dict[int, bool] = {}
        frames: list[int] = []
        for row in events.filter(ends).to_pylist():
            if (closer.setdefault(row["stream"], row["from_client"]) == row["from_client"]) == first:
                frames.append(row["frame"])
        return [
            Keyed(pa.chunked_array([pa.array(frames, pa.uint64())]), pa.chunked_array([pa.array([1] * len(frames))]))
        ]

    return get


def _dsack(side: str) -> Callable[[Source], list[Column | Keyed]]:
    """An edge of the first block of an ACK that reports bytes received twice."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = source.events.select(["frame", "sack", "dsack"])
        table = table.filter(pc.fill_null(table["dsack"], False)).combine_chunks()
        edges = [blocks[0][side] & 0xFFFFFFFF for blocks in table["sack"].to_pylist()]
        return [Keyed(table["frame"], pa.chunked_array([pa.array(edges, pa.int64())]))]

    return get


def _any_mark(source: Source) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return functools.reduce(pc.or_, (source.column(mark) for mark in MARKS))


def _duplicates(of_frame: bool) -> Callable[[Source], list[Column | Keyed]]:
    """A duplicate ACK's number among those of one acknowledgement number, or the frame of the first ACK with it."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow as pa

        names = ["frame", "stream", "from_client", "ack", "duplicate_ack"]
        table = source.capture.unfiltered.arrow("events").select(names).to_pandas()
        side = [table["stream"], table["from_client"]]
        run = (table["ack"] != table.groupby(side)["ack"].shift()).groupby(side).cumsum()
        runs = table.groupby([*side, run])
        values = runs["frame"].transform("first") if of_frame else runs["duplicate_ack"].cumsum()
        marked = table["duplicate_ack"].astype(bool)
        frames, values = table["frame"][marked], values[marked].astype("int64")
        return [Keyed(pa.chunked_array([pa.array(frames, pa.uint64())]), pa.chunked_array([pa.array(values)]))]

    return get


def _rto(of_frame: bool) -> Callable[[Source], list[Column | Keyed]]:
    """The oldest segment with the number of a plain retransmission, else the one that reached furthest; ns since it."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow as pa
        import pyarrow.compute as pc

        names = ["frame", "time", "stream", "from_client", "seq", "len", "retransmission", *_OTHER_REPEATS, *_KEEP]
        events = source.capture.unfiltered.arrow("events")
        counted = mapped(events["flags"], lambda flags: int("SYN" in flags or "FIN" in flags), "int64")
        table = events.select(names)
        table = table.set_column(names.index("len"), "len", pc.add(table["len"].cast("int64"), counted))
        first: dict[tuple[int, bool, int], tuple[int, int]] = {}
        furthest: dict[tuple[int, bool], tuple[int, int, int]] = {}
        frames: list[int] = []
        values: list[int] = []
        columns = [table[n].cast("int64") if n == "time" else table[n] for n in names]
        for frame, time, stream, asks, seq, length, again, *others in zip(
            *(c.to_pylist() for c in columns), strict=True
        ):
            if again and not any(others[: len(_OTHER_REPEATS)]):
                found = first.get((stream, asks, seq)) or furthest.get((stream, asks), (0, 0, 0))[1:]
                if found[0]:
                    frames.append(frame)
                    values.append(found[0] if of_frame else time - found[1])
            elif length and not any(others):
                first.setdefault((stream, asks, seq), (frame, time))
            if length and seq + length > furthest.get((stream, asks), (-1,))[0]:
                furthest[stream, asks] = seq + length, frame, time
        return [
            Keyed(pa.chunked_array([pa.array(frames, pa.uint64())]), pa.chunked_array([pa.array(values, pa.int64())]))
        ]

    return get


_OTHER_REPEATS = ("fast_retransmission", "spurious_retransmission", "out_of_order")
_BOTH = ("request_in", "response_in")
_KEEP = ("keep_alive", "zero_window_probe")


def _part(word: str) -> Callable[[Source], list[Column | Keyed]]:
    """A part of the request's target; there only where the target has a query."""

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow as pa

        frames: list[int] = []
        values: list[str] = []
        table = source.http
        for frame, target in zip(table["request_in"].to_pylist(), table["target"].to_pylist(), strict=True):
            path, mark, query = (target or "").partition("?")
            if frame is None or not mark:
                continue
            parts = {"path": [path], "query": [query], "parameter": query.split("&")}[word]
            values += parts
            frames += [frame] * len(parts)
        return [
            Keyed(pa.chunked_array([pa.array(frames, pa.uint64())]), pa.chunked_array([pa.array(values, "string")]))
        ]

    return get


def _number(frame: str, shift: int = 0, shown: tuple[str, ...] = ()) -> Callable[[Source], list[Column | Keyed]]:
    """A message's number among those of its connection, or (with `shift`) the frame of one before or behind it.

    `shown`: the messages of an exchange on whose frames Wireshark shows it.
    """

    def get(source: Source) -> list[Column | Keyed]:
        import pyarrow as pa

        table = source.http.select(["stream", "request_in", "response_in"]).to_pandas()
        table = table[table[frame].notna()].sort_values(frame, kind="stable")
        side = table.groupby("stream")
        table["value"] = side[frame].shift(-shift) if shift else side.cumcount() + 1
        table = table[table["value"].notna()]
        out: list[Column | Keyed] = []
        for name in shown or (frame,):
            there = table[table[name].notna()]
            frames, values = pa.array(there[name].astype("uint64")), pa.array(there["value"].astype("int64"))
            out.append(Keyed(pa.chunked_array([frames]), pa.chunked_array([values])))
        return out

    return get


def _phrase(source: Source) -> list[Column | Keyed]:
    """The standard's phrase for the status (RFC 9110, 15)."""
    import pyarrow as pa

    phrases = {status.value: status.phrase for status in HTTPStatus}
    (column,) = FIELDS["http.response.code"].get(source)
    words = [phrases.get(status) for status in column.values.to_pylist()]
    return [replace(column, values=pa.chunked_array([pa.array(words, "string")]))]


def _http_any(source: Source) -> list[Column | Keyed]:
    return [*FIELDS["http.request"].get(source), *FIELDS["http.response"].get(source)]


FIELDS: dict[str, Field] = {
    "frame": Field("bytes", lambda s: s.shown("frame"), "its bytes, as captured"),
    "frame.number": Field("int", _one("frame"), "the frame's number, from 1"),
    "frame.time": Field("instant", lambda s: [Column(s.times)], "when it was captured"),
    "frame.time_epoch": Field("seconds", lambda s: [Column(s.times)], "the same in seconds since 1970"),
    "frame.time_relative": Field("duration", _frame("time_relative"), "since the capture's first frame"),
    "frame.time_delta": Field("duration", _frame("time_delta"), "since the frame before it"),
    "frame.time_delta_displayed": Field("duration", _frame("time_delta"), "the same, of a capture without a filter"),
    "frame.len": Field("int", _frame("len"), "bytes on the wire"),
    "frame.cap_len": Field("int", _frame("cap_len"), "bytes captured"),
    "ip": Field("label", _address(4, "src"), "IPv4"),
    "ip.src": Field("ipv4", _address(4, "src"), "source"),
    "ip.dst": Field("ipv4", _address(4, "dst"), "destination"),
    "ip.addr": Field("ipv4", _address(4, "src", "dst"), "source and destination"),
    "ip.ttl": Field("int", _header("ttl", 4), "time to live", 8),
    "ip.id": Field("int", _header("ip_id", 4), "identification", 16),
    "ip.dsfield.dscp": Field("int", _header("dscp", 4), "differentiated services", 8),
    "ip.dsfield.ecn": Field("int", _header("ecn", 4), "congestion notification", 8),
    "ipv6": Field("label", _address(6, "src"), "IPv6"),
    "ipv6.src": Field("ipv6", _address(6, "src"), "source"),
    "ipv6.dst": Field("ipv6", _address(6, "dst"), "destination"),
    "ipv6.addr": Field("ipv6", _address(6, "src", "dst"), "source and destination"),
    "ipv6.hlim": Field("int", _header("ttl", 6), "hop limit", 8),
    "ipv6.tclass.dscp": Field("int", _header("dscp", 6), "differentiated services", 8),
    "ipv6.tclass.ecn": Field("int", _header("ecn", 6), "congestion notification", 8),
    "tcp": Field("label", _one("stream"), "TCP: every segment"),
    "tcp.stream": Field("int", _one("stream"), "the connection"),
    "tcp.srcport": Field("int", _one("sport"), "source port", 16),
    "tcp.dstport": Field("int", _one("dport"), "destination port", 16),
    "tcp.port": Field("int", _both("sport", "dport"), "source and destination port", 16),
    "tcp.len": Field("int", _one("len"), "bytes of payload"),
    "tcp.seq": Field("int", _modulo("seq"), "sequence number, relative"),
    "tcp.seq_raw": Field("int", _header("seq_raw"), "sequence number as it stands in the header"),
    "tcp.ack_raw": Field("int", _header("ack_raw"), "acknowledgement number as it stands in the header"),
    "tcp.nxtseq": Field("int", _next_seq, "sequence number behind the segment, relative"),
    "tcp.ack": Field("int", _modulo("ack"), "acknowledgement number, relative"),
    "tcp.flags": Field("int", lambda s: [Column(s.flags)], "the nine flags as a number", 16),
    **{f"tcp.flags.{name}": Field("bool", _flag(bit), f"the flag {name.upper()}") for name, bit in FLAGS.items()},
    "tcp.window_size": Field("int", _one("window"), "window, scaled"),
    "tcp.window_size_scalefactor": Field("signed", _scale, "its factor; -1 unknown, -2 not scaled"),
    "tcp.analysis.initial_rtt": Field("duration", _initial_rtt, "the handshake's round trip"),
    "tcp.options.mss": Field("label", _one("mss"), "option MSS"),
    "tcp.options.mss_val": Field("int", _one("mss"), "its value", 16),
    "tcp.options.wscale": Field("label", _one("wscale"), "option window scale"),
    "tcp.options.wscale.shift": Field("int", _one("wscale"), "its shift", 8),
    "tcp.options.timestamp": Field("label", _one("tsval"), "option timestamps"),
    "tcp.options.timestamp.tsval": Field("int", _one("tsval"), "its value"),
    "tcp.options.timestamp.tsecr": Field("int", _one("tsecr"), "its echo"),
    "tcp.options.sack": Field("label", _sack(None), "option SACK"),
    "tcp.options.sack.count": Field("int", _sack(None), "how many blocks", 8),
    "tcp.options.sack_le": Field("int", _sack("left"), "left edges, relative"),
    "tcp.options.sack_re": Field("int", _sack("right"), "right edges, relative"),
    "tcp.time_delta": Field("duration", _nanos("time_delta_ms"), "since the stream's previous segment"),
    "tcp.time_relative": Field("duration", _since_first, "since the stream's first segment"),
    "tcp.completeness": Field("int", _of_stream("completeness"), "the stream's completeness, its last value", 8),
    "tcp.ack.nonzero": Field("label", _where(_acks_nothing), "an acknowledgement number without the flag ACK"),
    "tcp.analysis": Field("label", _where(_noted), "something is noted of the segment"),
    "tcp.connection.fin_active": Field("label", _fin(True), "a FIN of the side that closes first"),
    "tcp.connection.fin_passive": Field("label", _fin(False), "a FIN of the other side"),
    "tcp.options.sack.dsack_le": Field("int", _dsack("left"), "left edge of what was received twice"),
    "tcp.options.sack.dsack_re": Field("int", _dsack("right"), "right edge of what was received twice"),
    "tcp.options.sack.dsack": Field("label", _where(lambda s: s.column("dsack")), "reports bytes received twice"),
    "tcp.connection.syn": Field("label", _where(_flags_are(0x12, 0x02)), "a SYN that asks for a connection"),
    "tcp.connection.synack": Field("label", _where(_flags_are(0x12, 0x12)), "a SYN that accepts one"),
    "tcp.connection.fin": Field("label", _where(_flags_are(0x01, 0x01)), "a FIN"),
    "tcp.connection.rst": Field("label", _where(_flags_are(0x04, 0x04)), "a RST"),
    "tcp.analysis.flags": Field("label", _where(_any_mark), "any of the marks below"),
    **{
        f"tcp.analysis.{m}": Field("label", _where(lambda s, m=m: s.column(m)), m.replace("_", " "))  # type: ignore[misc]
        for m in MARKS
    },
    "tcp.analysis.acks_frame": Field("int", _one("acks_frame"), "the frame that it acknowledges"),
    "tcp.analysis.ack_rtt": Field("duration", _nanos("ack_rtt_ms"), "since that frame"),
    "tcp.analysis.duplicate_ack_num": Field("int", _duplicates(False), "which duplicate of this number it is"),
    "tcp.analysis.duplicate_ack_frame": Field("int", _duplicates(True), "the ACK that it repeats"),
    "tcp.analysis.rto": Field("duration", _rto(False), "since the segment that it repeats"),
    "tcp.analysis.rto_frame": Field("int", _rto(True), "the segment that it repeats"),
    "tcp.analysis.bytes_in_flight": Field("int", _one("bytes_in_flight"), "bytes not yet acknowledged"),
    "tcp.analysis.push_bytes_sent": Field("int", _one("push_bytes_sent"), "bytes since the last PSH"),
    "http": Field("protocol", _http_any, "a frame that completes a request or an answer"),
    "http.request": Field("bool", _http("request_in", None), "a frame that completes a request"),
    "http.request.method": Field("text", _http("request_in", "method"), "GET, POST ..."),
    "http.request.uri": Field("text", _http("request_in", "target"), "the request's target"),
    "http.request.uri.path": Field("text", _part("path"), "the target up to '?'"),
    "http.request.uri.query": Field("text", _part("query"), "the target behind '?'"),
    "http.request.uri.query.parameter": Field("text", _part("parameter"), "its parts between '&'"),
    "http.host": Field("text", _http("request_in", "host"), "whom the request is for: Host"),
    "http.response": Field("bool", _http("response_in", None), "a frame that completes an answer"),
    "http.response.code": Field("int", _http("response_in", "status"), "its status", 16),
    "http.time": Field("duration", _http_time, "from the request's frame to the answer's"),
    "http.request_in": Field("int", _http("response_in", "request_in"), "the request's frame"),
    "http.request_number": Field("int", _number("request_in"), "which request of its connection, from 1"),
    "http.response_number": Field("int", _number("response_in"), "which answer of its connection, from 1"),
    "http.prev_request_in": Field("int", _number("request_in", -1, _BOTH), "the connection's request before it"),
    "http.next_request_in": Field("int", _number("request_in", 1, _BOTH), "the connection's next request"),
    "http.prev_response_in": Field("int", _number("response_in", -1), "the connection's answer before it"),
    "http.next_response_in": Field("int", _number("response_in", 1), "the connection's next answer"),
    "http.response.code.desc": Field("text", _phrase, "what its status is called"),
    "http.response_in": Field("int", _http("request_in", "response_in"), "the answer's frame"),
    "http.chat": Field("label", _messages, "a frame that completes a request or an answer"),
    "udp": Field("label", lambda s: [Column(s.udp("sport"))], "a question to a name server over UDP, or its answer"),
    "udp.srcport": Field("int", lambda s: [Column(s.udp("sport"))], "source port", 16),
    "udp.dstport": Field("int", lambda s: [Column(s.udp("dport"))], "destination port", 16),
    "udp.port": Field("int", lambda s: [Column(s.udp(end)) for end in ("sport", "dport")], "both ports", 16),
    "dns": Field("label", _dns("request_in"), "a question to a name server, or its answer"),
    "dns.qry.name": Field("text", _dns("target"), "the name in question"),
    "dns.flags.response": Field("bool", _dns_response, "0 a question, 1 an answer"),
    "dns.flags.rcode": Field("int", _http("response_in", "status", "dns"), "the answer's code: 3 is NXDOMAIN", 16),
    "dns.response_in": Field("int", _http("request_in", "response_in", "dns"), "the frame of the answer"),
    "dns.response_to": Field("int", _http("response_in", "request_in", "dns"), "the frame of the question"),
    "dns.time": Field("duration", _http("response_in", "took", "dns"), "from the question to the answer"),
}
"""Every field of the subset; docs/filters.md lists them."""


def _from_bytes(name: str, source: Source) -> list[Column | Keyed]:
    return source.shown(name)


def _from_head(name: str, source: Source) -> list[Column | Keyed]:
    return source.head(name)


def _add(kind: str, meanings: dict[str, str], bits: int = 16) -> None:
    for name, meaning in meanings.items():
        FIELDS[name] = Field(kind, functools.partial(_from_bytes, name), meaning, bits, shown=True)


_add("protocol", {
    "mdns": "multicast DNS", "llmnr": "link-local multicast names", "eth": "Ethernet", "vlan": "a VLAN tag",
    "arp": "ARP", "icmp": "ICMP", "icmpv6": "ICMPv6",
})  # fmt: skip
_add("ether", {
    "eth.src": "source", "eth.dst": "destination", "eth.addr": "source and destination",
    "arp.src.hw_mac": "the sender's Ethernet address", "arp.dst.hw_mac": "the target's Ethernet address",
})  # fmt: skip
_add("bool", {
    "eth.src.ig": "source: a group's address", "eth.dst.ig": "destination: a group's address",
    "eth.src.lg": "source: locally administered", "eth.dst.lg": "destination: locally administered",
    "eth.ig": "a group's address", "eth.lg": "locally administered", "arp.isgratuitous": "about the sender itself",
    "ip.flags.rb": "reserved bit", "ip.flags.df": "do not fragment", "ip.flags.mf": "more fragments",
    "dns.flags.truncated": "truncated", "dns.flags.recdesired": "recursion desired",
    "dns.flags.checkdisable": "checking disabled", "dns.flags.authoritative": "authoritative",
    "dns.flags.recavail": "recursion available", "dns.flags.authenticated": "answer authenticated",
    "vlan.dei": "drop eligible",
}, 1)  # fmt: skip
_add("int", {
    "eth.type": "what it carries", "eth.len": "length, of IEEE 802.3", "vlan.id": "the VLAN's number",
    "vlan.priority": "priority", "vlan.etype": "what it carries", "arp.opcode": "1 asks, 2 answers",
    "arp.hw.type": "hardware", "arp.proto.type": "protocol", "ip.len": "total length", "ip.checksum": "header checksum",
    "ip.frag_offset": "fragment offset in bytes", "icmp.checksum": "checksum", "icmp.ident": "identifier",
    "icmp.seq": "sequence number", "icmp.seq_le": "the same, little-endian", "icmp.mtu": "the next hop's MTU",
    "icmpv6.checksum": "checksum", "icmpv6.echo.identifier": "identifier",
    "icmpv6.echo.sequence_number": "sequence number", "ipv6.plen": "payload length", "udp.length": "length",
    "udp.checksum": "checksum", "tcp.window_size_value": "window as it stands in the header",
    "tcp.checksum": "checksum", "tcp.urgent_pointer": "urgent pointer", "tcp.options.wscale.multiplier": "its factor",
    "dns.id": "transaction", "dns.flags": "the flags as a number", "dns.count.queries": "questions",
    "dns.count.answers": "answers", "dns.count.auth_rr": "authority records", "dns.count.add_rr": "additional records",
    "dns.qry.type": "wanted type: 1 A, 28 AAAA", "dns.qry.class": "wanted class",
    "dns.qry.name.len": "letters of the name in question", "dns.resp.type": "type of a record",
    "dns.resp.class": "class of a record", "dns.resp.len": "length of a record",
})  # fmt: skip
_add("int", {
    "ip.version": "4, or 6 of IPv6", "ip.hdr_len": "header length in bytes",
    "ip.dsfield": "differentiated services and ECN",
    "ip.flags": "the three flags as a number", "ip.proto": "protocol: 1 ICMP, 6 TCP, 17 UDP", "icmp.type": "type",
    "icmp.code": "code", "icmpv6.type": "type", "icmpv6.code": "code", "ipv6.version": "6", "ipv6.nxt": "next header",
    "tcp.hdr_len": "header length in bytes", "tcp.flags.res": "reserved bits",
    "tcp.option_kind": "kinds of its options",
    "tcp.option_len": "lengths of its options",
}, 8)  # fmt: skip
_add("int", {
    "ipv6.tclass": "traffic class", "ipv6.flow": "flow label", "icmpv6.mtu": "MTU", "dns.resp.ttl": "seconds to live",
}, 32)  # fmt: skip
_add("ipv4", {
    "arp.src.proto_ipv4": "the sender", "arp.dst.proto_ipv4": "the wanted address", "dns.a": "addresses of an answer",
    "icmp.redir_gw": "gateway of a redirect",
})  # fmt: skip
_add("ipv6", {
    "dns.aaaa": "addresses of an answer", "icmpv6.nd.ns.target_address": "the wanted address",
    "icmpv6.nd.na.target_address": "who answers",
})  # fmt: skip
_add("int", {
    "frame.interface_id": "the interface's number, of pcapng", "ip.checksum.status": "2: not verified",
    "udp.checksum.status": "2: not verified, 3: none", "tcp.checksum.status": "2: not verified",
    "udp.stream": "the conversation's number", "icmp.resp_in": "the frame of the reply",
    "icmp.resp_to": "the frame of the request", "dns.txt.length": "length of a text", "dns.srv.priority": "priority",
    "dns.srv.weight": "weight", "dns.srv.port": "port", "dns.mx.preference": "preference",
    "dns.soa.serial_number": "serial number", "dns.soa.refresh_interval": "seconds",
    "dns.soa.retry_interval": "seconds", "dns.soa.expire_limit": "seconds", "dns.soa.minimum_ttl": "seconds",
    "dns.flags.opcode": "0 is a query",
}, 32)  # fmt: skip
_add("ms", {"icmp.resptime": "from the request to the reply, in ms"})
_add("label", {
    "icmp.no_resp": "an echo request without a reply",
    "arp.duplicate-address-detected": "an IPv4 address that another Ethernet address had",
    "tcp.options.nop": "option NOP", "tcp.options.sack_perm": "option SACK permitted",
    "tcp.options.eol": "end of options",
})  # fmt: skip
_add("int", {"arp.duplicate-address-frame": "the last frame in which that one had it"}, 32)
_add("text", {
    "dns.txt": "texts of an answer", "dns.srv.target": "server of a service", "dns.soa.mname": "main name server",
    "dns.soa.rname": "whom to write to",
    "ip.src_host": "source as text", "ip.dst_host": "destination as text", "ip.host": "both as text",
    "ipv6.src_host": "source as text", "ipv6.dst_host": "destination as text", "ipv6.host": "both as text",
    "tcp.flags.str": "the flags as Wireshark shows them", "dns.cname": "names of an answer", "dns.ns": "name servers",
    "dns.resp.name": "name of a record", "dns.ptr.domain_name": "name of an address",
    "dns.mx.mail_exchange": "mail servers",
})  # fmt: skip
_add("bytes", {
    "tcp.payload": "what it carries", "tcp.options": "all options", "udp.payload": "what it carries",
})  # fmt: skip
_add("label", {
    "tls.record": "a record", "tls.handshake": "a message of the handshake, encrypted or not",
    "tls.change_cipher_spec": "ChangeCipherSpec", "tls.alert_message": "an alert, encrypted or not",
})  # fmt: skip
_add("protocol", {"tls": "a frame that completes a TLS record"})
_add("bytes", {
    "tls.app_data": "encrypted data", "tls.handshake.random": "random bytes of the hello",
    "tls.handshake.session_id": "the session's id",
})  # fmt: skip
_add("int", {
    "tls.record.content_type": "21 alert, 22 handshake, 23 data", "tls.record.opaque_type": "the same of TLS 1.3",
    "tls.handshake.type": "1 ClientHello, 2 ServerHello, 11 Certificate", "tls.alert_message.level": "2 is fatal",
    "tls.alert_message.desc": "which alert", "tls.handshake.session_id_length": "length of the session's id",
}, 8)  # fmt: skip
_add("int", {
    "tls.record.version": "version of the record", "tls.record.length": "length", "tls.handshake.length": "length",
    "tls.handshake.version": "version of the hello", "tls.handshake.ciphersuite": "offered or chosen",
    "tls.handshake.extension.type": "extensions of the hello",
    "tls.handshake.extensions.supported_version": "versions offered or chosen",
}, 32)  # fmt: skip
_add("text", {
    "tls.handshake.extensions_server_name": "SNI", "tls.handshake.extensions_alpn_str": "protocols offered or chosen",
})  # fmt: skip
_add("bool", {
    "frame.marked": "marked in Wireshark: never", "frame.ignored": "ignored in Wireshark: never",
    "arp.isprobe": "asks whether an address is in use", "arp.isannouncement": "a gratuitous request",
    "dns.flags.z": "reserved bit", "dns.resp.z.do": "accepts DNSSEC", "ipv6.fraghdr.more": "more fragments",
    "icmpv6.nd.ra.flag.m": "addresses from DHCPv6", "icmpv6.nd.ra.flag.o": "other configuration from DHCPv6",
    "icmpv6.nd.ra.flag.h": "home agent", "icmpv6.nd.ra.flag.p": "proxy", "icmpv6.nd.na.flag.r": "router",
    "icmpv6.nd.na.flag.s": "solicited", "icmpv6.nd.na.flag.o": "override",
}, 1)  # fmt: skip
_add("duration", {
    "frame.offset_shift": "time shift in Wireshark: none", "udp.time_relative": "since the conversation's first frame",
    "udp.time_delta": "since the conversation's previous frame",
})  # fmt: skip
_add("int", {
    "frame.encap_type": "the link layer, by Wireshark's own number: 1 is Ethernet", "eth.src.oui": "source: its maker",
    "eth.dst.oui": "destination: its maker", "eth.addr.oui": "both makers",
    "icmp.ident_le": "identifier, little-endian", "eth.fcs": "checksum of the frame, where it was captured",
    "ipv6.fraghdr.ident": "identification", "ipv6.fraghdr.offset": "offset in 8 bytes",
    "icmpv6.nd.ra.router_lifetime": "seconds", "icmpv6.nd.ra.reachable_time": "ms",
    "icmpv6.nd.ra.retrans_timer": "ms", "icmpv6.opt.mtu": "MTU", "icmpv6.opt.prefix.valid_lifetime": "seconds",
    "icmpv6.opt.prefix.preferred_lifetime": "seconds", "ip.opt.ra": "router alert",
    "dns.count.labels": "labels of the name in question", "dns.rr.udp_payload_size": "bytes that fit into an answer",
    "dns.resp.z": "flags of EDNS0", "tls.handshake.cipher_suites_length": "bytes of the offered suites",
    "tls.handshake.extensions_length": "bytes of the extensions",
    "tls.handshake.extension.len": "bytes of an extension",
    "tls.handshake.extensions_server_name_list_len": "bytes of the names", "tls.handshake.certificate_length": "bytes",
    "tls.handshake.extensions_server_name_len": "letters of the SNI", "tls.handshake.certificates_length": "bytes",
    "tls.handshake.extensions_supported_groups_length": "bytes", "tls.handshake.sig_hash_alg_len": "bytes",
    "tls.handshake.extensions_supported_group": "groups offered or chosen",
    "tls.handshake.sig_hash_alg": "signature algorithms", "tls.handshake.extensions_alpn_len": "bytes",
    "tls.handshake.extensions_key_share_client_length": "bytes", "tls.handshake.extensions_key_share_group": "group",
    "tls.handshake.extensions_key_share_key_exchange_length": "bytes",
    "tls.handshake.session_ticket_lifetime_hint": "seconds", "tls.handshake.session_ticket_length": "bytes",
    "tls.handshake.server_named_curve": "curve of the server's key",
}, 32)  # fmt: skip
_add("int", {
    "arp.hw.size": "bytes of a hardware address", "arp.proto.size": "bytes of a protocol address",
    "ip.opt.type": "types of its options", "ip.opt.len": "lengths of its options",
    "icmp.checksum.status": "0: wrong, 1: right, 2: not verified",
    "icmpv6.checksum.status": "0: wrong, 1: right, 2: not verified", "ipv6.fraghdr.nxt": "next header",
    "ipv6.routing.type": "type of the routing header", "ipv6.routing.segleft": "segments left",
    "icmpv6.nd.ra.cur_hop_limit": "hop limit", "icmpv6.nd.ra.flag": "flags", "icmpv6.nd.ra.flag.prf": "preference",
    "icmpv6.opt.type": "types of options", "icmpv6.opt.length": "lengths in 8 bytes",
    "icmpv6.opt.prefix.length": "bits of the prefix", "tcp.options.mptcp.subtype": "subtype",
    "tcp.options.mptcp.version": "version", "dns.resp.ext_rcode": "upper bits of the code",
    "dns.resp.edns0_version": "version of EDNS", "tls.handshake.comp_methods_length": "bytes",
    "tls.handshake.comp_method": "compression", "tls.handshake.extensions_server_name_type": "0: a host",
    "tls.handshake.extensions_ec_point_formats_length": "bytes",
    "tls.handshake.extensions_ec_point_format": "point formats", "tls.handshake.sig_hash_hash": "hash of a signature",
    "tls.handshake.sig_hash_sig": "algorithm of a signature", "tls.handshake.extensions_alpn_str_len": "letters",
    "tls.handshake.extensions.supported_versions_len": "bytes", "tls.handshake.extensions_reneg_info_len": "bytes",
    "tls.handshake.server_curve_type": "3: a named curve", "tls.handshake.server_point_len": "bytes",
    "tls.handshake.client_point_len": "bytes",
}, 8)  # fmt: skip
_add("ether", {
    "ipv6.slaac_mac": "Ethernet address inside an address", "ipv6.src_slaac_mac": "of the source",
    "ipv6.dst_slaac_mac": "of the destination",
})  # fmt: skip
_add("ipv6", {"icmpv6.opt.prefix": "announced prefix"})
_add("label", {
    "ipv6.hopopts": "hop-by-hop options", "ipv6.routing": "a routing header", "ipv6.dstopts": "destination options",
    "ipv6.fraghdr": "a fragment", "icmpv6.opt": "an option", "tcp.options.md5": "option MD5",
    "tcp.options.tfo": "option Fast Open", "tcp.options.tfo.request": "asks for a cookie",
    "tcp.options.experimental": "an experimental option",
    "tls.handshake.ciphersuites": "a list of suites", "tls.handshake.comp_methods": "a list of compressions",
    "tls.handshake.extensions_supported_groups": "a list of groups",
    "tls.handshake.extensions_ec_point_formats": "a list of point formats",
    "tls.handshake.sig_hash_algs": "a list of signature algorithms",
    "tls.handshake.extensions_alpn_list": "a list of protocols", "tls.handshake.certificates": "certificates",
})  # fmt: skip
_add("bytes", {
    "eth.padding": "zeros up to the shortest frame", "eth.trailer": "what stands behind the packet",
    "icmpv6.opt.linkaddr": "a link-layer address", "tcp.options.md5.digest": "its digest",
    "tcp.options.tfo.cookie": "its cookie", "tls.handshake.random_bytes": "random bytes behind the time",
    "tls.handshake.extensions_key_share_key_exchange": "key shares", "tls.handshake.certificate": "certificates",
    "tls.handshake.session_ticket": "ticket", "tls.handshake.server_point": "the server's key",
    "tls.handshake.client_point": "the client's key",
})  # fmt: skip
_add("text", {
    "tls.handshake.ja3": "JA3 of a ClientHello", "tls.handshake.ja3_full": "what it is made of",
    "tls.handshake.ja3s": "JA3S of a ServerHello", "tls.handshake.ja3s_full": "what it is made of",
})  # fmt: skip
_add("instant", {"tls.handshake.random_time": "the first bytes of the random as a time"})
_add("int", {
    **NUMBERS, "dns.opt.code": "which option: 8 is the client's subnet, 10 a cookie", "dns.opt.len": "its bytes",
}, 32)  # fmt: skip
_add("label", {"tcp.segments": "completes a message that several frames carried", "dns.opt": "an option of EDNS0"})
_add("bytes", {"tcp.segment_data": "a part of such a message", "dns.opt.data": "what it carries"})
_add("text", {
    "frame.protocols": "the layers, as eth:ethertype:ip:tcp:http", "dns.srv.service": "service of a record's name",
    "dns.srv.proto": "protocol of a record's name", "dns.srv.name": "domain of a record's name",
})  # fmt: skip
for _name, _meaning in {**BODIES, **CHUNKS}.items():
    FIELDS[_name] = Field(
        "int" if _name in CHUNKS else "bytes", functools.partial(_from_head, _name), _meaning, shown=True
    )
for _name, _meaning in {**NAMES, **OTHERS}.items():
    FIELDS[_name] = Field(
        "int" if _name == "http.content_length" else "text",
        functools.partial(_from_head, _name),
        f"header {_meaning}" if _name in NAMES else _meaning,
        63,
        shown=True,
    )

_WIDE = [
    *("ip.src", "ip.dst", "ip.addr", "ip.ttl", "ip.id", "ip.dsfield.dscp", "ip.dsfield.ecn", "ipv6.src", "ipv6.dst"),
    *("ipv6.addr", "ipv6.hlim", "ipv6.tclass.dscp", "ipv6.tclass.ecn", "tcp.srcport", "tcp.dstport", "tcp.port"),
    *("tcp.flags", "udp.srcport", "udp.dstport", "udp.port", "dns.qry.name", "dns.flags.rcode", "dns.flags.response"),
    *(f"tcp.flags.{name}" for name in FLAGS),
]
"""Fields of `events` that other frames have, too: from their bytes where the filter runs over every frame."""
_PROTOCOLS = ["ip", "ipv6", "tcp", "udp", "dns"]


def _widen(name: str, kind: str | None = None) -> None:
    """Takes a field from the frames' bytes where the filter runs over every frame."""
    known = FIELDS[name]

    def get(source: Source) -> list[Column | Keyed]:
        return source.shown(name) if source.whole else known.get(source)

    FIELDS[name] = replace(known, kind=kind or known.kind, get=get)


for _name in _WIDE:
    _widen(_name)
for _name in _PROTOCOLS:
    _widen(_name, "protocol")
