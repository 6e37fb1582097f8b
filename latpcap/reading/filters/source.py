"""Sources of field values for display filters. Each table of the capture is read when a field first needs it.

`Source` covers the TCP segments, `Datagrams` the frames of DNS lookups over UDP, and `Frames` every frame. Values come
as a `Column` (one per row of `events`) or as `Keyed` (any number of values for some frames).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from latpcap.lazy import np, pa, pc
from latpcap.reading.filters import reassembly
from latpcap.reading.filters.http import completed
from latpcap.user_waits.lookups import SERVICES

if TYPE_CHECKING:
    from latpcap.reading.rereadable import Recorded

ENCAPSULATIONS = {0: 15, 1: 1, 12: 7, 14: 7, 101: 7, 9: 4, 104: 28, 108: 15, 113: 25, 228: 129, 229: 130, 276: 210}
"""Wireshark's encapsulation number (WTAP_ENCAP) by LINKTYPE_ number; the values of `frame.encap_type`."""
_MEDIA = {
    "text/html": "data-text-lines", "text/plain": "data-text-lines", "text/css": "data-text-lines",
    "text/javascript": "data-text-lines", "application/javascript": "data-text-lines",
    "application/x-javascript": "data-text-lines", "application/json": "json", "text/xml": "xml",
    "application/xml": "xml", "application/soap+xml": "xml", "image/png": "png", "image/gif": "image-gif",
    "image/jpeg": "image-jfif", "application/x-www-form-urlencoded": "urlencoded-form",
    "multipart/form-data": "mime_multipart", "application/ocsp-response": "ocsp", "application/ocsp-request": "ocsp",
}  # fmt: skip
"""Wireshark's name of the dissector for an HTTP body, by content type."""
_ABOVE_TCP = {
    20: "ftp-data", 21: "ftp", 22: "ssh", 23: "telnet", 25: "smtp", 53: "dns", 80: "http", 88: "kerberos", 102: "tpkt",
    110: "pop", 139: "nbss", 143: "imap", 179: "bgp", 389: "ldap", 443: "tls", 445: "nbss", 502: "mbtcp", 554: "rtsp",
    587: "smtp", 1433: "tds", 1883: "mqtt", 1935: "rtmpt", 3128: "http", 3268: "ldap", 3306: "mysql", 5060: "sip",
    5222: "xmpp", 5432: "pgsql", 5672: "amqp", 6379: "resp", 6667: "irc", 8080: "http", 9042: "cql",
}  # fmt: skip
"""Wireshark's name of the protocol that it expects on a TCP port."""
_LABELS = {"FIN": 1, "SYN": 2, "RST": 4, "PSH": 8, "ACK": 16, "URG": 32, "ECE": 64, "CWR": 128, "AE": 256}
_DATAGRAM_COLUMNS = ("frame", "time", "src", "dst")


@dataclass(frozen=True)
class Column:
    """One value per row of `events`, in the same order; null where the row lacks the field."""

    values: pa.ChunkedArray


@dataclass(frozen=True)
class Keyed:
    """Values with the number of their frame; a frame may occur several times or not at all."""

    frames: pa.ChunkedArray
    values: pa.ChunkedArray


class Source:
    """Field values of the capture's TCP segments."""

    whole = False
    """Whether the filter runs over every frame of the capture, not only over TCP segments."""

    def __init__(self, capture: Recorded, events: pa.Table | None = None):
        self.capture = capture
        self.events = capture.arrow("events") if events is None else events
        self.wanted: set[str] = set()
        """Names of the fields that the filter uses; set before `dissected` is first read."""

    @cached_property
    def dissected(self) -> dict[str, Keyed]:
        """The wanted fields that are dissected from the frames' bytes, which are read again."""
        from latpcap.reading.filters.conversations import FIELDS, Conversations
        from latpcap.reading.filters.dissect import values
        from latpcap.reading.filters.tls import Tls

        values_of: dict[str, tuple[list[int], list[Any]]] = {name: ([], []) for name in self.wanted}
        # 1. Create only the state that the wanted fields need.
        needs_all_frames = bool(FIELDS & self.wanted)
        conversations = Conversations() if needs_all_frames else None
        has_protocols = "frame.protocols" in values_of
        needs_reassembly = has_protocols or bool(reassembly.FIELDS & self.wanted)
        needs_tls = needs_reassembly or any(name.partition(".")[0] == "tls" for name in self.wanted)
        tls = Tls() if needs_tls else None
        payloads: dict[int, bytes] = {}
        layers: dict[int, list[str]] = {}
        # 2. Dissect each frame.
        for record in self.capture.unfiltered.records(None if needs_all_frames else self.frames_to_read()):
            if conversations is not None:
                conversations.frame, conversations.time_ns = record.frame, record.time_ns
            if tls is not None:
                tls.frame = record.frame
            shown = values(record.data, record.link, tls, conversations)
            if (needs_reassembly or "http" in values_of) and "tcp.payload" in shown:
                payloads[record.frame] = shown["tcp.payload"][-1]
            if has_protocols:
                layers[record.frame] = shown["layers"] + (["tls"] if "tls" in shown else _above(shown))
            shown |= {"frame.marked": [0], "frame.ignored": [0], "frame.offset_shift": [0]}
            if record.link in ENCAPSULATIONS:
                shown["frame.encap_type"] = [ENCAPSULATIONS[record.link]]
            if self.capture.format.startswith("pcapng"):
                shown["frame.interface_id"] = [record.interface]
            for name, (frames, column_values) in values_of.items():
                for value in shown.get(name, ()):
                    frames.append(record.frame)
                    column_values.append(value)
        # 3. Add the fields that are known only when all frames are read: replies, messages and reassembly.
        later: dict[str, list[tuple[int, Any]]] = {**conversations.finished()} if conversations else {}
        if "http" in values_of:
            later["http"] = self._http_messages(payloads)
        if needs_reassembly:
            later |= self._reassembled(payloads, layers, tls.joined if tls else [])
        for name, pairs in later.items():
            if name in values_of:
                values_of[name][0].extend(frame for frame, _ in pairs)
                values_of[name][1].extend(value for _, value in pairs)
        return {name: keyed(*columns) for name, columns in values_of.items()}

    def _http_messages(self, payloads: Mapping[int, bytes]) -> list[tuple[int, bytes]]:
        """Return the bytes of each HTTP message, with the frame that completes it."""
        from latpcap.reading.filters.heads import frames_of, messages_of

        messages = list(messages_of(self.http))
        frames_of_messages = frames_of(messages, self.capture.unfiltered.arrow("events"))
        return [
            (message[3], b"".join(payloads.get(frame, b"") for frame in frames))
            for message, frames in zip(messages, frames_of_messages, strict=True)
        ]

    def _reassembled(
        self, payloads: dict[int, bytes], layers: dict[int, list[str]], joined_records: list[tuple[list[int], int]]
    ) -> dict[str, list[tuple[int, Any]]]:
        """Return the fields of messages in several frames, and `frame.protocols`."""
        events = self.capture.unfiltered.arrow("events")
        tables = (reassembly.of_tables(table, events) for table in (self.http, self.dns_over_tcp))
        repeats = _repeats(events)
        fields = reassembly.values([*chain(*tables), *joined_records], payloads, repeats)
        parts = {frame for frame, _ in fields["tcp.reassembled_in"] if "tls" not in layers.get(frame, ())}
        return {**fields, "frame.protocols": list(self._protocols(layers, repeats | parts))}

    def _protocols(self, layers: dict[int, list[str]], parts: set[int]) -> Iterator[tuple[int, str]]:
        """Yield `frame.protocols` of each frame, e.g. `eth:ethertype:ip:tcp:http`.

        Frames in `parts` carry an incomplete piece of a message or repeat one. Like Wireshark, their layers end at TCP.
        """
        inside = {f: "http" for name in ("request_in", "response_in") for f in self.http[name].to_pylist()}
        bodies, kinds = (dict(self.bodies.get(f"http.{name}", ())) for name in ("file_data", "content_type"))
        for frame in inside.keys() & bodies.keys():
            content_type = kinds.get(frame, "").partition(";")[0].strip().lower()
            inside[frame] = "http:" + _MEDIA.get(content_type, "media" if content_type else "data")
        for name in ("request_in", "response_in"):
            inside |= dict.fromkeys(self.dns_over_tcp[name].to_pylist(), "dns")
        for frame, names in layers.items():
            below = names[: names.index("tcp") + 1] if "tcp" in names and (frame in inside or frame in parts) else names
            yield frame, ":".join([*below, inside[frame]] if frame in inside else below)

    @cached_property
    def bodies(self) -> dict[str, list[tuple[int, Any]]]:
        """Frame and value of the HTTP/1 fields, including those of message bodies."""
        from latpcap.reading.filters.heads import values

        unfiltered = self.capture.unfiltered
        return values(unfiltered, self.http, unfiltered.arrow("events"), bodies=True)

    @cached_property
    def heads(self) -> dict[str, Keyed]:
        """Values of the HTTP/1 fields by name; bodies are read only if a wanted field needs them."""
        from latpcap.reading.filters.heads import BODIES, CHUNKS, values

        unfiltered = self.capture.unfiltered
        with_bodies = bool((BODIES.keys() | CHUNKS.keys()) & self.wanted)
        by_name = self.bodies if with_bodies else values(unfiltered, self.http, unfiltered.arrow("events"))
        return {name: keyed([frame for frame, _ in pairs], [v for _, v in pairs]) for name, pairs in by_name.items()}

    def head(self, name: str) -> list[Column | Keyed]:
        """Return the values of an HTTP/1 header or body field."""
        return [self.heads.get(name) or keyed([], [])]

    def frames_to_read(self) -> list[int] | None:
        """Return the numbers of the frames to dissect; None for all frames of the capture."""
        return [int(frame) for frame in self.events["frame"].to_pylist()]

    def shown(self, name: str) -> list[Column | Keyed]:
        """Return the values of a field that is dissected from the frames' bytes."""
        return [self.dissected[name]]

    @cached_property
    def http(self) -> pa.Table:
        """HTTP/1 exchanges, with the frames that completed request and response."""
        unfiltered = self.capture.unfiltered
        return completed(unfiltered.arrow("exchanges"), unfiltered.arrow("events"), "http")

    @cached_property
    def dns_over_tcp(self) -> pa.Table:
        """DNS exchanges over TCP, with the frames that completed query and response."""
        unfiltered = self.capture.unfiltered
        return completed(unfiltered.arrow("exchanges"), unfiltered.arrow("events"), "dns")

    @cached_property
    def dns(self) -> pa.Table:
        """DNS queries with the columns `request_in`, `response_in`, `target`, `status` and `dns_ns` (duration)."""
        lookups = self.dns_over_tcp
        return lookups.append_column("dns_ns", between(lookups, self.capture.unfiltered.arrow("events")))

    def udp(self, port: str) -> pa.ChunkedArray:
        """Return the UDP port ("sport" or "dport") of each row; TCP segments have none."""
        return _nulls("int64", self.events.num_rows)

    @cached_property
    def flags(self) -> pa.ChunkedArray:
        """TCP's flag bits as a number; 0x002 is SYN."""
        return mapped(self.events["flags"], _bits, "int64")

    @cached_property
    def frames(self) -> dict[str, pa.Array]:
        """Lengths (bytes) and times since the first and the previous frame (ns), aligned with `events`."""
        table = np.frombuffer(b"".join(self.capture.heads()), "<i8").reshape(-1, 3)
        times, rows = table[:, 0], self.events["frame"].to_numpy().astype(np.int64) - 1
        since = {"time_relative": times - times[:1], "time_delta": np.diff(times, prepend=times[:1])}
        columns = {**since, "len": table[:, 1], "cap_len": table[:, 2]}
        return {name: pa.array(column[rows]) for name, column in columns.items()}

    @cached_property
    def headers(self) -> pa.Table:
        """Header fields that `events` lacks (TTL, IP id, raw sequence numbers), read again; aligned with `events`."""
        from latpcap.reading.rereadable import headers

        return headers(self.capture, self.events)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column of `events`."""
        return self.events[name]

    def nanos(self, name: str) -> pa.ChunkedArray:
        """Return a column of `events` that is in ms as whole ns."""
        return pc.round(pc.multiply(self.events[name], 1e6)).cast("int64")

    @cached_property
    def times(self) -> pa.ChunkedArray:
        """Capture time of each row, in ns since 1970."""
        return self.events["time"].cast("int64")


class Datagrams(Source):
    """Field values of the DNS queries and responses over UDP, from `lookups`. TCP's columns are null."""

    def __init__(self, capture: Recorded):
        table = capture.arrow("lookups")
        over_udp = pc.and_(pc.is_null(table["stream"]), pc.greater(table["server_port"], 0))  # no ARP, no NDP
        self.lookups = table.filter(over_udp)
        requests, answers = (self._side(capture, message) for message in ("request", "response"))
        both = pa.concat_tables([requests, answers], promote_options="default").sort_by("frame")
        schema = capture.arrow("events").schema
        columns = [both[f.name] if f.name in _DATAGRAM_COLUMNS else _nulls(f.type, both.num_rows) for f in schema]
        self.ports = both
        super().__init__(capture, pa.table(columns, names=schema.names))

    def _side(self, capture: Recorded, message: str) -> pa.Table:
        """Return frame, time, addresses and ports of the queries (`message` "request") or of the responses."""
        rows = self.lookups.filter(pc.is_valid(self.lookups[f"{message}_frame"]))
        is_request = message == "request"
        sender, receiver = ("client", "server") if is_request else ("server", "client")
        named = {"frame": f"{message}_frame", "time": "start" if is_request else "end", "src": sender, "dst": receiver}
        named |= {"sport": f"{sender}_port", "dport": f"{receiver}_port"}
        table = rows.select(list(named.values())).rename_columns(list(named))
        for name in ("src", "dst"):
            table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
        return table

    @cached_property
    def http(self) -> pa.Table:
        """An empty table: HTTP/1 does not run over UDP."""
        return super().http[:0]

    @cached_property
    def dns(self) -> pa.Table:
        """The DNS lookups, without requests to other services (NTP and the like)."""
        services = pc.is_in(self.lookups["method"].cast("string"), pa.array(SERVICES))
        table = self.lookups.filter(pc.invert(services))
        names = {"request_frame": "request_in", "response_frame": "response_in"}
        start, end = (table[name].cast("int64") for name in ("start", "end"))
        chosen = table.select(["request_frame", "response_frame", "target", "status"])
        chosen = chosen.rename_columns([names.get(name, name) for name in chosen.column_names])
        return chosen.append_column("dns_ns", pc.subtract(end, start))

    def udp(self, port: str) -> pa.ChunkedArray:
        """Return the UDP port ("sport" or "dport") of each row."""
        return self.ports[port].cast("int64")


class Frames(Source):
    """Field values of every frame of the capture. Columns of `events` are null for frames without TCP."""

    whole = True

    def __init__(self, capture: Recorded):
        events = capture.arrow("events")
        heads = np.frombuffer(b"".join(capture.heads()), "<i8").reshape(-1, 3)
        frames = pa.array(np.arange(1, len(heads) + 1, dtype=np.uint64)).cast(events.schema.field("frame").type)
        table = events.take(pc.index_in(frames, value_set=events["frame"].combine_chunks()))
        instant_type = events.schema.field("time").type
        named = {"frame": frames, "time": pa.array(heads[:, 0]).cast(instant_type)}
        for name, column in named.items():
            table = table.set_column(table.column_names.index(name), name, pa.chunked_array([column]))
        super().__init__(capture, table)

    def frames_to_read(self) -> list[int] | None:
        """Return None: every frame is dissected."""
        return None

    @cached_property
    def dns(self) -> pa.Table:
        """DNS queries over TCP and UDP."""
        names = ["request_in", "response_in", "target", "status", "dns_ns"]
        over_tcp, over_udp = super().dns.select(names), Datagrams(self.capture).dns.select(names)
        return pa.concat_tables([over_tcp, over_udp.cast(over_tcp.schema)])


def keyed(frames: list[int], values: list[Any]) -> Keyed:
    """Build a `Keyed` of frame numbers and their values."""
    arrow_type = pa.large_binary() if values and isinstance(values[0], bytes) else None
    array = pa.array(values, arrow_type) if values else pa.array([], pa.int64())
    return Keyed(pa.chunked_array([pa.array(frames, pa.uint64())]), pa.chunked_array([array]))


def _above(shown: dict[str, list[Any]]) -> list[str]:
    """Return the layer above TCP by the lower known port, or "data"; empty for a segment without payload.

    HTTP and DNS are set later from their exchanges, TLS from its records.
    """
    if "tcp.payload" not in shown or shown["layers"][-1] != "tcp":
        return []
    return [next((_ABOVE_TCP[port] for port in sorted(shown["tcp.port"][-2:]) if port in _ABOVE_TCP), "data")]


def ports_of(protocol: str) -> list[tuple[str, int]]:
    """Return the ports on which Wireshark expects a protocol, e.g. `[("tcp", 3306)]` for mysql."""
    from latpcap.reading.filters.dissect import ABOVE_UDP

    transports = (("tcp", _ABOVE_TCP), ("udp", ABOVE_UDP))
    return [(transport, port) for transport, names in transports for port, name in names.items() if name == protocol]


def _repeats(events: pa.Table) -> set[int]:
    """Return the frames whose payload repeats earlier bytes, including keep-alives."""
    names = ("retransmission", "fast_retransmission", "spurious_retransmission", "keep_alive")
    marked = functools.reduce(pc.or_, (events[name] for name in names))
    return set(events["frame"].filter(pc.and_(marked, pc.greater(events["len"], 0))).to_pylist())


def _nulls(arrow_type: Any, rows: int) -> pa.ChunkedArray:
    return pa.chunked_array(
        [pa.nulls(rows, arrow_type if isinstance(arrow_type, pa.DataType) else pa.type_for_alias(arrow_type))]
    )


def mapped(column: pa.ChunkedArray, function: Callable[[str], Any], to: str) -> pa.ChunkedArray:
    """Apply a function to a column of words; it is called once per distinct word."""
    chunks = []
    for chunk in column.chunks:
        if not pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_encode()
        results = pa.array([function(word) for word in chunk.dictionary.to_pylist()], to)
        chunks.append(pc.take(results, chunk.indices))
    return pa.chunked_array(chunks, to)


def _bits(label: str) -> int:
    return sum(_LABELS.get(part, 0) for part in label.split(", "))


def between(table: pa.Table, events: pa.Table) -> pa.ChunkedArray:
    """Return the time from the frame that completes each request to that of its response, in ns.

    Null where one of the two frames is unknown.
    """
    frames, times = events["frame"].combine_chunks(), events["time"].cast("int64")
    begin, end = (pc.take(times, pc.index_in(table[name], value_set=frames)) for name in ("request_in", "response_in"))
    return pc.subtract(end, begin)
