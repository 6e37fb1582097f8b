"""The fields that a display filter can name, and how each is read from a `Source`.

A field that a frame may have twice (`tcp.port`) is read as two columns. Null means that the frame lacks the field.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TypeAlias

from latpcap.lazy import pa, pc
from latpcap.reading.filters.dissected import DISSECTED
from latpcap.reading.filters.heads import BODIES, CHUNKS, NAMES, OTHERS
from latpcap.reading.filters.source import Column, Keyed, Source, between, keyed, mapped

_Getter: TypeAlias = "Callable[[Source], list[Column | Keyed]]"

MARKS = [
    "retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "lost_segment",
    "ack_lost_segment", "duplicate_ack", "keep_alive", "keep_alive_ack", "window_update", "window_full", "zero_window",
    "zero_window_probe", "zero_window_probe_ack", "reused_ports",
]  # fmt: skip
"""Fields `tcp.analysis.*` without a value; boolean columns of `events` have the same names."""

FLAGS = {"fin": 0, "syn": 1, "reset": 2, "push": 3, "ack": 4, "urg": 5, "ece": 6, "cwr": 7, "ae": 8}
"""Bit number of each TCP flag."""
_OTHER_REPEATS = ("fast_retransmission", "spurious_retransmission", "out_of_order")
_PROBES = ("keep_alive", "zero_window_probe")
_BOTH_MESSAGES = ("request_in", "response_in")


@dataclass(frozen=True)
class Field:
    """The kind of a field's values, and the function that reads them."""

    kind: str
    """One of `values.KINDS` or "label".

    "duration", "instant", "seconds" and "ms" are held in ns. "ether" has six bytes. "protocol" has the bytes from the
    protocol's header on, but cannot be compared. "label" is present or absent and has no value.
    """
    get: _Getter
    meaning: str
    """What docs/filters.md prints about the field."""
    bits: int = 32
    """Width of an "int", which bounds the literals that a filter may compare it with."""
    shown: bool = False
    """Whether the field is dissected from the frames' bytes."""


def _columns(*names: str) -> _Getter:
    return lambda source: [Column(source.column(name)) for name in names]


def _ms_column(name: str) -> _Getter:
    return lambda source: [Column(source.nanos(name))]


def _frame_column(name: str) -> _Getter:
    return lambda source: [Column(source.frames[name])]


def _dissected(name: str) -> _Getter:
    return lambda source: source.shown(name)


def _http_head(name: str) -> _Getter:
    return lambda source: source.head(name)


def _header(name: str, version: int | None = None) -> _Getter:
    """Read a header field that `events` lacks; `version` limits it to IPv4 or IPv6."""

    def get(source: Source) -> list[Column | Keyed]:
        values = source.headers[name]
        if version is None:
            return [Column(values)]
        in_family = mapped(source.column("src"), lambda a: (":" in a) == (version == 6), "bool")
        return [Column(pc.if_else(in_family, values, pa.scalar(None, pa.int64())))]

    return get


def _label(mask: Callable[[Source], pa.ChunkedArray]) -> _Getter:
    """Make a label of a boolean column: true becomes present, false becomes null."""

    def get(source: Source) -> list[Column | Keyed]:
        return [Column(pc.if_else(mask(source), True, pa.scalar(None, pa.bool_())))]

    return get


def _has_flags(mask: int, wanted: int) -> Callable[[Source], pa.ChunkedArray]:
    """Return a test of the TCP flags under a mask: 0x12, 0x02 finds a SYN without ACK."""

    def test(source: Source) -> pa.ChunkedArray:
        return pc.equal(pc.bit_wise_and(source.flags, mask), wanted)

    return test


def _acks_nothing(source: Source) -> pa.ChunkedArray:
    return pc.and_(_has_flags(0x10, 0)(source), pc.not_equal(source.column("ack"), 0))


def _flag(bit: int) -> _Getter:
    def get(source: Source) -> list[Column | Keyed]:
        return [Column(pc.bit_wise_and(pc.shift_right(source.flags, bit), 1))]

    return get


def _modulo_32_bits(name: str) -> _Getter:
    """Read a relative sequence number modulo 2^32, as Wireshark shows it."""

    def get(source: Source) -> list[Column | Keyed]:
        return [Column(pc.bit_wise_and(source.column(name), 0xFFFFFFFF))]

    return get


def _next_seq(source: Source) -> list[Column | Keyed]:
    ends = pc.not_equal(pc.bit_wise_and(source.flags, 3), 0).cast("int64")  # together they count once, as in Wireshark
    total = pc.add(pc.add(source.column("seq"), source.column("len").cast("int64")), ends)
    return [Column(pc.bit_wise_and(total, 0xFFFFFFFF))]


def _since_first(source: Source) -> list[Column | Keyed]:
    """Compute ns since the stream's first segment (`streams.start`)."""
    streams = source.capture.arrow("streams")
    rows = pc.index_in(source.column("stream"), value_set=streams["stream"].combine_chunks())
    return [Column(pc.subtract(source.times, pc.take(streams["start"].cast("int64"), rows)))]


def _of_stream(name: str) -> _Getter:
    def get(source: Source) -> list[Column | Keyed]:
        streams = source.capture.arrow("streams")
        rows = pc.index_in(source.column("stream"), value_set=streams["stream"].combine_chunks())
        return [Column(pc.take(streams[name], rows))]

    return get


def _sack(side: str | None) -> _Getter:
    """Read the "left" or "right" edges of the SACK blocks, or (None) the number of blocks."""

    def get(source: Source) -> list[Column | Keyed]:
        blocks = source.column("sack")
        if side is None:
            return [Column(pc.list_value_length(blocks))]
        table = source.events.select(["frame", "sack"]).filter(pc.is_valid(blocks)).combine_chunks()
        blocks = table["sack"].combine_chunks()
        edges = pc.bit_wise_and(pc.struct_field(pc.list_flatten(blocks), side), 0xFFFFFFFF)
        return [Keyed(pc.take(table["frame"], pc.list_parent_indices(blocks)), pa.chunked_array([edges]))]

    return get


def _address(version: int, *names: str) -> _Getter:
    """Read addresses of one IP version as text; null for the other version."""

    def get(source: Source) -> list[Column | Keyed]:
        return [
            Column(mapped(source.column(n), lambda a: a if (":" in a) == (version == 6) else None, "string"))
            for n in names
        ]

    return get


def _exchange_value(frame: str, value: str | None, protocol: str = "http") -> _Getter:
    """Read a column of the exchanges, placed on the frame that completes the message.

    `frame` is "request_in" or "response_in". `value` None gives 1 for every such frame.
    """

    def get(source: Source) -> list[Column | Keyed]:
        exchanges = getattr(source, protocol)
        table = exchanges.filter(pc.is_valid(exchanges[frame]))
        values = pc.is_valid(table[frame]).cast("int8") if value is None else table[value]
        return [Keyed(table[frame], values)]

    return get


def _dns(value: str | None) -> _Getter:
    """Read a column of the DNS lookups, placed on the frames of both query and response."""

    def get(source: Source) -> list[Column | Keyed]:
        return [
            *_exchange_value("request_in", value, "dns")(source),
            *_exchange_value("response_in", value, "dns")(source),
        ]

    return get


def _dns_response(source: Source) -> list[Column | Keyed]:
    """Give 0 on a query, 1 on a response."""
    (requests,), (answers,) = (_exchange_value(frame, None, "dns")(source) for frame in ("request_in", "response_in"))
    return [Keyed(requests.frames, pc.multiply(requests.values, 0)), answers]  # type: ignore[union-attr]


def _messages(source: Source) -> list[Column | Keyed]:
    """Give 1 on each frame that completes an HTTP request or response."""
    return [*_exchange_value("request_in", None)(source), *_exchange_value("response_in", None)(source)]


def _http_time(source: Source) -> list[Column | Keyed]:
    """Compute the time from the frame that completes the request to the one that completes the response."""
    table = source.http.filter(pc.is_valid(source.http["response_in"]))
    return [Keyed(table["response_in"], between(table, source.capture.unfiltered.arrow("events")))]


def _scale(source: Source) -> list[Column | Keyed]:
    """Compute the window scale factor, as Wireshark does.

    -1 if the handshake was not captured, -2 if one side does not scale. SYNs have no factor.
    """
    columns = [_of_stream(name)(source)[0].values for name in ("client_wscale", "server_wscale", "completeness")]
    client, server, completeness = columns
    is_answered = pc.not_equal(pc.bit_wise_and(completeness.cast("int64"), 2), 0)
    own_shift = pc.if_else(source.column("from_client"), client, server).cast("int64")
    both_scale = pc.and_(pc.is_valid(client), pc.is_valid(server))
    factor = pc.fill_null(pc.shift_left(pa.scalar(1, pa.int64()), own_shift), -1)
    factor = pc.if_else(pc.and_(is_answered, pc.invert(both_scale)), -2, factor)
    is_no_syn = pc.equal(pc.bit_wise_and(source.flags, 2), 0)
    return [Column(pc.if_else(is_no_syn, factor, pa.scalar(None, pa.int64())))]


def _initial_rtt(source: Source) -> list[Column | Keyed]:
    """Read the handshake's round trip, on every segment that has another field of Wireshark's analysis."""
    rtt_ns = pc.round(pc.multiply(_of_stream("initial_rtt_ms")(source)[0].values, 1e6)).cast("int64")
    return [Column(pc.if_else(_noted(source), rtt_ns, pa.scalar(None, pa.int64())))]


def _noted(source: Source) -> pa.ChunkedArray:
    """Return a mask of the segments that have a field of Wireshark's analysis (`tcp.analysis`)."""
    has_note = [pc.is_valid(source.column(name)) for name in ("acks_frame", "bytes_in_flight", "push_bytes_sent")]
    return functools.reduce(pc.or_, [*has_note, pc.fill_null(_any_mark(source), False)])


def _fin(first: bool) -> _Getter:
    """Find the FINs of the side that closed first, or (`first` False) of the other side."""

    def get(source: Source) -> list[Column | Keyed]:

        events = source.capture.unfiltered.arrow("events").select(["frame", "stream", "from_client", "flags"])
        ends = mapped(events["flags"], lambda flags: "FIN" in flags, "bool")
        closer: dict[int, bool] = {}
        frames: list[int] = []
        for row in events.filter(ends).to_pylist():
            if (closer.setdefault(row["stream"], row["from_client"]) == row["from_client"]) == first:
                frames.append(row["frame"])
        return [keyed(frames, [1] * len(frames))]

    return get


def _dsack(side: str) -> _Getter:
    """Read an edge of the first SACK block of an ACK that reports bytes received twice (RFC 2883)."""

    def get(source: Source) -> list[Column | Keyed]:
        table = source.events.select(["frame", "sack", "dsack"])
        table = table.filter(pc.fill_null(table["dsack"], False)).combine_chunks()
        edges = [blocks[0][side] & 0xFFFFFFFF for blocks in table["sack"].to_pylist()]
        return [Keyed(table["frame"], pa.chunked_array([pa.array(edges, pa.int64())]))]

    return get


def _any_mark(source: Source) -> pa.ChunkedArray:
    return functools.reduce(pc.or_, (source.column(mark) for mark in MARKS))


def _duplicates(of_frame: bool) -> _Getter:
    """Count the duplicate ACKs of one acknowledgement number, or (`of_frame`) give the frame of its first ACK."""

    def get(source: Source) -> list[Column | Keyed]:

        names = ["frame", "stream", "from_client", "ack", "duplicate_ack"]
        table = source.capture.unfiltered.arrow("events").select(names).to_pandas()
        side = [table["stream"], table["from_client"]]
        run = (table["ack"] != table.groupby(side)["ack"].shift()).groupby(side).cumsum()
        runs = table.groupby([*side, run])
        values = runs["frame"].transform("first") if of_frame else runs["duplicate_ack"].cumsum()
        marked = table["duplicate_ack"].astype(bool)
        return [keyed(table["frame"][marked].tolist(), values[marked].astype("int64").tolist())]

    return get


def _rto(of_frame: bool) -> _Getter:
    """Find the segment that a retransmission repeats: its frame (`of_frame`), or the ns since it.

    It is the first segment with that sequence number, or else the segment with the highest sequence number so far.
    Fast, spurious and out-of-order retransmissions have no such segment, as in Wireshark.
    """

    def get(source: Source) -> list[Column | Keyed]:
        names = ["frame", "time", "stream", "from_client", "seq", "len", "retransmission", *_OTHER_REPEATS, *_PROBES]
        events = source.capture.unfiltered.arrow("events")
        counted = mapped(events["flags"], lambda flags: int("SYN" in flags or "FIN" in flags), "int64")
        table = events.select(names)
        table = table.set_column(names.index("len"), "len", pc.add(table["len"].cast("int64"), counted))
        first: dict[tuple[int, bool, int], tuple[int, int]] = {}
        furthest: dict[tuple[int, bool], tuple[int, int, int]] = {}
        frames: list[int] = []
        values: list[int] = []
        columns = [table[name].cast("int64") if name == "time" else table[name] for name in names]
        for frame, time, stream, from_client, seq, length, is_repeat, *others in zip(
            *(column.to_pylist() for column in columns), strict=True
        ):
            side = stream, from_client
            if is_repeat and not any(others[: len(_OTHER_REPEATS)]):
                first_copy = first.get((*side, seq)) or furthest.get(side, (0, 0, 0))[1:]
                if first_copy[0]:
                    frames.append(frame)
                    values.append(first_copy[0] if of_frame else time - first_copy[1])
            elif length and not any(others):
                first.setdefault((*side, seq), (frame, time))
            if length and seq + length > furthest.get(side, (-1,))[0]:
                furthest[side] = seq + length, frame, time
        return [keyed(frames, values)]

    return get


def _part(word: str) -> _Getter:
    """Read the path, query or parameters of the request's target; null if the target has no query."""

    def get(source: Source) -> list[Column | Keyed]:
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
        return [keyed(frames, values)]

    return get


def _number(frame: str, shift: int = 0, shown: tuple[str, ...] = ()) -> _Getter:
    """Number the messages of a connection from 1, or (with `shift`) give the frame of the previous or next message.

    `shown` names the frames of an exchange that have the field; it defaults to the message's own frame.
    """

    def get(source: Source) -> list[Column | Keyed]:
        table = source.http.select(["stream", "request_in", "response_in"]).to_pandas()
        table = table[table[frame].notna()].sort_values(frame, kind="stable")
        side = table.groupby("stream")
        table["value"] = side[frame].shift(-shift) if shift else side.cumcount() + 1
        table = table[table["value"].notna()]
        columns: list[Column | Keyed] = []
        for name in shown or (frame,):
            rows = table[table[name].notna()]
            columns.append(keyed(rows[name].astype("uint64").tolist(), rows["value"].astype("int64").tolist()))
        return columns

    return get


def _phrase(source: Source) -> list[Column | Keyed]:
    """Look up the reason phrase of the status (RFC 9110, section 15)."""
    phrases = {status.value: status.phrase for status in HTTPStatus}
    (column,) = FIELDS["http.response.code"].get(source)
    texts = [phrases.get(status) for status in column.values.to_pylist()]
    return [replace(column, values=pa.chunked_array([pa.array(texts, "string")]))]


FIELDS: dict[str, Field] = {
    "frame": Field("bytes", _dissected("frame"), "its bytes, as captured"),
    "frame.number": Field("int", _columns("frame"), "the frame's number, from 1"),
    "frame.time": Field("instant", lambda s: [Column(s.times)], "when it was captured"),
    "frame.time_epoch": Field("seconds", lambda s: [Column(s.times)], "the same in seconds since 1970"),
    "frame.time_relative": Field("duration", _frame_column("time_relative"), "since the capture's first frame"),
    "frame.time_delta": Field("duration", _frame_column("time_delta"), "since the frame before it"),
    "frame.time_delta_displayed": Field(
        "duration", _frame_column("time_delta"), "the same, of a capture without a filter"
    ),
    "frame.len": Field("int", _frame_column("len"), "bytes on the wire"),
    "frame.cap_len": Field("int", _frame_column("cap_len"), "bytes captured"),
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
    "tcp": Field("label", _columns("stream"), "TCP: every segment"),
    "tcp.stream": Field("int", _columns("stream"), "the connection"),
    "tcp.srcport": Field("int", _columns("sport"), "source port", 16),
    "tcp.dstport": Field("int", _columns("dport"), "destination port", 16),
    "tcp.port": Field("int", _columns("sport", "dport"), "source and destination port", 16),
    "tcp.len": Field("int", _columns("len"), "bytes of payload"),
    "tcp.seq": Field("int", _modulo_32_bits("seq"), "sequence number, relative"),
    "tcp.seq_raw": Field("int", _header("seq_raw"), "sequence number as it stands in the header"),
    "tcp.ack_raw": Field("int", _header("ack_raw"), "acknowledgement number as it stands in the header"),
    "tcp.nxtseq": Field("int", _next_seq, "sequence number behind the segment, relative"),
    "tcp.ack": Field("int", _modulo_32_bits("ack"), "acknowledgement number, relative"),
    "tcp.flags": Field("int", lambda s: [Column(s.flags)], "the nine flags as a number", 16),
    **{f"tcp.flags.{name}": Field("bool", _flag(bit), f"the flag {name.upper()}") for name, bit in FLAGS.items()},
    "tcp.window_size": Field("int", _columns("window"), "window, scaled"),
    "tcp.window_size_scalefactor": Field("signed", _scale, "its factor; -1 unknown, -2 not scaled"),
    "tcp.analysis.initial_rtt": Field("duration", _initial_rtt, "the handshake's round trip"),
    "tcp.options.mss": Field("label", _columns("mss"), "option MSS"),
    "tcp.options.mss_val": Field("int", _columns("mss"), "its value", 16),
    "tcp.options.wscale": Field("label", _columns("wscale"), "option window scale"),
    "tcp.options.wscale.shift": Field("int", _columns("wscale"), "its shift", 8),
    "tcp.options.timestamp": Field("label", _columns("tsval"), "option timestamps"),
    "tcp.options.timestamp.tsval": Field("int", _columns("tsval"), "its value"),
    "tcp.options.timestamp.tsecr": Field("int", _columns("tsecr"), "its echo"),
    "tcp.options.sack": Field("label", _sack(None), "option SACK"),
    "tcp.options.sack.count": Field("int", _sack(None), "how many blocks", 8),
    "tcp.options.sack_le": Field("int", _sack("left"), "left edges, relative"),
    "tcp.options.sack_re": Field("int", _sack("right"), "right edges, relative"),
    "tcp.time_delta": Field("duration", _ms_column("time_delta_ms"), "since the stream's previous segment"),
    "tcp.time_relative": Field("duration", _since_first, "since the stream's first segment"),
    "tcp.completeness": Field("int", _of_stream("completeness"), "the stream's completeness, its last value", 8),
    "tcp.ack.nonzero": Field("label", _label(_acks_nothing), "an acknowledgement number without the flag ACK"),
    "tcp.analysis": Field("label", _label(_noted), "something is noted of the segment"),
    "tcp.connection.fin_active": Field("label", _fin(True), "a FIN of the side that closes first"),
    "tcp.connection.fin_passive": Field("label", _fin(False), "a FIN of the other side"),
    "tcp.options.sack.dsack_le": Field("int", _dsack("left"), "left edge of what was received twice"),
    "tcp.options.sack.dsack_re": Field("int", _dsack("right"), "right edge of what was received twice"),
    "tcp.options.sack.dsack": Field("label", _label(lambda s: s.column("dsack")), "reports bytes received twice"),
    "tcp.connection.syn": Field("label", _label(_has_flags(0x12, 0x02)), "a SYN that asks for a connection"),
    "tcp.connection.synack": Field("label", _label(_has_flags(0x12, 0x12)), "a SYN that accepts one"),
    "tcp.connection.fin": Field("label", _label(_has_flags(0x01, 0x01)), "a FIN"),
    "tcp.connection.rst": Field("label", _label(_has_flags(0x04, 0x04)), "a RST"),
    "tcp.analysis.flags": Field("label", _label(_any_mark), "any of the marks below"),
    **{
        f"tcp.analysis.{mark}": Field("label", _label(lambda s, mark=mark: s.column(mark)), mark.replace("_", " "))  # type: ignore[misc]
        for mark in MARKS
    },
    "tcp.analysis.acks_frame": Field("int", _columns("acks_frame"), "the frame that it acknowledges"),
    "tcp.analysis.ack_rtt": Field("duration", _ms_column("ack_rtt_ms"), "since that frame"),
    "tcp.analysis.duplicate_ack_num": Field("int", _duplicates(False), "which duplicate of this number it is"),
    "tcp.analysis.duplicate_ack_frame": Field("int", _duplicates(True), "the ACK that it repeats"),
    "tcp.analysis.rto": Field("duration", _rto(False), "since the segment that it repeats"),
    "tcp.analysis.rto_frame": Field("int", _rto(True), "the segment that it repeats"),
    "tcp.analysis.bytes_in_flight": Field("int", _columns("bytes_in_flight"), "bytes not yet acknowledged"),
    "tcp.analysis.push_bytes_sent": Field("int", _columns("push_bytes_sent"), "bytes since the last PSH"),
    "http": Field("protocol", _messages, "a frame that completes a request or an answer"),
    "http.request": Field("bool", _exchange_value("request_in", None), "a frame that completes a request"),
    "http.request.method": Field("text", _exchange_value("request_in", "method"), "GET, POST ..."),
    "http.request.uri": Field("text", _exchange_value("request_in", "target"), "the request's target"),
    "http.request.uri.path": Field("text", _part("path"), "the target up to '?'"),
    "http.request.uri.query": Field("text", _part("query"), "the target behind '?'"),
    "http.request.uri.query.parameter": Field("text", _part("parameter"), "its parts between '&'"),
    "http.host": Field("text", _exchange_value("request_in", "host"), "whom the request is for: Host"),
    "http.response": Field("bool", _exchange_value("response_in", None), "a frame that completes an answer"),
    "http.response.code": Field("int", _exchange_value("response_in", "status"), "its status", 16),
    "http.time": Field("duration", _http_time, "from the request's frame to the answer's"),
    "http.request_in": Field("int", _exchange_value("response_in", "request_in"), "the request's frame"),
    "http.request_number": Field("int", _number("request_in"), "which request of its connection, from 1"),
    "http.response_number": Field("int", _number("response_in"), "which answer of its connection, from 1"),
    "http.prev_request_in": Field(
        "int", _number("request_in", -1, _BOTH_MESSAGES), "the connection's request before it"
    ),
    "http.next_request_in": Field("int", _number("request_in", 1, _BOTH_MESSAGES), "the connection's next request"),
    "http.prev_response_in": Field("int", _number("response_in", -1), "the connection's answer before it"),
    "http.next_response_in": Field("int", _number("response_in", 1), "the connection's next answer"),
    "http.response.code.desc": Field("text", _phrase, "what its status is called"),
    "http.response_in": Field("int", _exchange_value("request_in", "response_in"), "the answer's frame"),
    "http.chat": Field("label", _messages, "a frame that completes a request or an answer"),
    "udp": Field("label", lambda s: [Column(s.udp("sport"))], "a question to a name server over UDP, or its answer"),
    "udp.srcport": Field("int", lambda s: [Column(s.udp("sport"))], "source port", 16),
    "udp.dstport": Field("int", lambda s: [Column(s.udp("dport"))], "destination port", 16),
    "udp.port": Field("int", lambda s: [Column(s.udp(end)) for end in ("sport", "dport")], "both ports", 16),
    "dns": Field("label", _dns("request_in"), "a question to a name server, or its answer"),
    "dns.qry.name": Field("text", _dns("target"), "the name in question"),
    "dns.flags.response": Field("bool", _dns_response, "0 a question, 1 an answer"),
    "dns.flags.rcode": Field(
        "int", _exchange_value("response_in", "status", "dns"), "the answer's code: 3 is NXDOMAIN", 16
    ),
    "dns.response_in": Field("int", _exchange_value("request_in", "response_in", "dns"), "the frame of the answer"),
    "dns.response_to": Field("int", _exchange_value("response_in", "request_in", "dns"), "the frame of the question"),
    "dns.time": Field("duration", _exchange_value("response_in", "dns_ns", "dns"), "from the question to the answer"),
}
"""Every field that a filter can name; docs/filters.md lists them."""

for _name, _kind, _meaning, _bits in DISSECTED:
    FIELDS[_name] = Field(_kind, _dissected(_name), _meaning, _bits, shown=True)
for _name, _meaning in {**BODIES, **CHUNKS}.items():
    FIELDS[_name] = Field("int" if _name in CHUNKS else "bytes", _http_head(_name), _meaning, shown=True)
for _name, _meaning in {**NAMES, **OTHERS}.items():
    _kind = "int" if _name == "http.content_length" else "text"
    _meaning = f"header {_meaning}" if _name in NAMES else _meaning
    FIELDS[_name] = Field(_kind, _http_head(_name), _meaning, 63, shown=True)

_WIDE = [
    *("ip.src", "ip.dst", "ip.addr", "ip.ttl", "ip.id", "ip.dsfield.dscp", "ip.dsfield.ecn", "ipv6.src", "ipv6.dst"),
    *("ipv6.addr", "ipv6.hlim", "ipv6.tclass.dscp", "ipv6.tclass.ecn", "tcp.srcport", "tcp.dstport", "tcp.port"),
    *("tcp.flags", "udp.srcport", "udp.dstport", "udp.port", "dns.qry.name", "dns.flags.rcode", "dns.flags.response"),
    *(f"tcp.flags.{name}" for name in FLAGS),
]
"""Fields of `events` that frames of other protocols have, too."""
_WIDE_PROTOCOLS = ["ip", "ipv6", "tcp", "udp", "dns"]


def _widen(name: str, kind: str | None = None) -> None:
    """Dissect a field from the frames' bytes if the filter runs over every frame; else read it as before."""
    field = FIELDS[name]

    def get(source: Source) -> list[Column | Keyed]:
        return source.shown(name) if source.whole else field.get(source)

    FIELDS[name] = replace(field, kind=kind or field.kind, get=get)


for _name in _WIDE:
    _widen(_name)
for _name in _WIDE_PROTOCOLS:
    _widen(_name, "protocol")
