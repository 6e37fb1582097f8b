"""The values of a filter's fields, from the tables of a capture, each of which is read when it is first needed.

`Source` has the fields of TCP segments, `Datagrams` those of lookups over UDP. Values are either one per segment
(`Column`), or belong to some frames only (`Keyed`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from latpcap.reading.filters import reassembly
from latpcap.reading.filters.http import completed
from latpcap.user_waits.lookups import SERVICES

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.reading.rereadable import Recorded

ENCAPSULATIONS = {0: 15, 1: 1, 12: 7, 14: 7, 101: 7, 9: 4, 104: 28, 108: 15, 113: 25, 228: 129, 229: 130, 276: 210}
"""Wireshark's numbers of link layers, by LINKTYPE_ number."""
_MEDIA = {
    "text/html": "data-text-lines", "text/plain": "data-text-lines", "text/css": "data-text-lines",
    "text/javascript": "data-text-lines", "application/javascript": "data-text-lines",
    "application/x-javascript": "data-text-lines", "application/json": "json", "text/xml": "xml",
    "application/xml": "xml", "application/soap+xml": "xml", "image/png": "png", "image/gif": "image-gif",
    "image/jpeg": "image-jfif", "application/x-www-form-urlencoded": "urlencoded-form",
    "multipart/form-data": "mime_multipart", "application/ocsp-response": "ocsp", "application/ocsp-request": "ocsp",
}  # fmt: skip
"""Wireshark's dissectors of bodies, by content type."""
_ABOVE_TCP = {
    20: "ftp-data", 21: "ftp", 22: "ssh", 23: "telnet", 25: "smtp", 53: "dns", 80: "http", 88: "kerberos", 102: "tpkt",
    110: "pop", 139: "nbss", 143: "imap", 179: "bgp", 389: "ldap", 443: "tls", 445: "nbss", 502: "mbtcp", 554: "rtsp",
    587: "smtp", 1433: "tds", 1883: "mqtt", 1935: "rtmpt", 3128: "http", 3268: "ldap", 3306: "mysql", 5060: "sip",
    5222: "xmpp", 5432: "pgsql", 5672: "amqp", 6379: "resp", 6667: "irc", 8080: "http", 9042: "cql",
}  # fmt: skip
"""Wireshark's protocols by TCP port."""
_LABELS = {"FIN": 1, "SYN": 2, "RST": 4, "PSH": 8, "ACK": 16, "URG": 32, "ECE": 64, "CWR": 128, "AE": 256}


@dataclass(frozen=True)
class Column:
    """One value per segment, in the order of `events`."""

    values: pa.ChunkedArray


@dataclass(frozen=True)
class Keyed:
    """Values of some frames; a frame may have several."""

    frames: pa.ChunkedArray
    values: pa.ChunkedArray


class Source:
    """The tables of one capture, each read when a field needs it."""

    whole = False
    """Whether the filter runs over every frame of the capture, not only TCP segments."""

    def __init__(self, capture: Recorded, events: pa.Table | None = None):
        self.capture = capture
        self.events = capture.arrow("events") if events is None else events
        self.wanted: set[str] = set()

    @cached_property
    def dissected(self) -> dict[str, Keyed]:
        """The wanted fields of these frames from their bytes, by a second reading."""
        from latpcap.reading.filters.conversations import FIELDS, Conversations
        from latpcap.reading.filters.dissect import values
        from latpcap.reading.filters.heads import frames_of, messages_of
        from latpcap.reading.filters.tls import Tls

        found: dict[str, tuple[list[int], list[Any]]] = {name: ([], []) for name in self.wanted}
        ordered = bool(FIELDS & self.wanted)
        before = Conversations() if ordered else None
        protocols = found.get("frame.protocols")
        joins = protocols is not None or bool(reassembly.FIELDS & self.wanted)
        wants_tls = joins or any(name.partition(".")[0] == "tls" for name in self.wanted)
        tls = Tls() if wants_tls else None
        payloads: dict[int, bytes] = {}
        layers: dict[int, list[str]] = {}
        for record in self.capture.unfiltered.records(None if ordered else self.of_records()):
            if before is not None:
                before.frame, before.time = record.frame, record.time_ns
            if tls is not None:
                tls.frame = record.frame
            shown = values(record.data, record.link, tls, before)
            if (joins or "http" in found) and "tcp.payload" in shown:
                payloads[record.frame] = shown["tcp.payload"][-1]
            if protocols is not None:
                layers[record.frame] = shown["layers"] + (["tls"] if "tls" in shown else _above(shown))
            shown |= {"frame.marked": [0], "frame.ignored": [0], "frame.offset_shift": [0]}
            if record.link in ENCAPSULATIONS:
                shown["frame.encap_type"] = [ENCAPSULATIONS[record.link]]
            if self.capture.format.startswith("pcapng"):
                shown["frame.interface_id"] = [record.interface]
            for name, (frames, held) in found.items():
                for value in shown.get(name, ()):
                    frames.append(record.frame)
                    held.append(value)
        later: dict[str, list[tuple[int, Any]]] = {**before.finished()} if before else {}
        if "http" in found:  # the bytes of messages
            messages = list(messages_of(self.http))
            carried = frames_of(messages, self.capture.unfiltered.arrow("events"))
            later["http"] = [
                (message[3], b"".join(payloads.get(frame, b"") for frame in frames))
                for message, frames in zip(messages, carried, strict=True)
            ]
        if joins:
            whole = self.capture.unfiltered.arrow("events")
            tables = (reassembly.of_tables(table, whole) for table in (self.http, self.dns_over_tcp))
            repeats = _repeats(whole)
            later |= reassembly.values([*chain(*tables), *(tls.joined if tls else [])], payloads, repeats)
            begun = {frame for frame, _ in later["tcp.reassembled_in"] if "tls" not in layers.get(frame, ())}
            parts = repeats | begun
            later["frame.protocols"] = list(self._protocols(layers, parts))
        for name, pairs in later.items():
            if name in found:
                found[name][0].extend(frame for frame, _ in pairs)
                found[name][1].extend(value for _, value in pairs)
        return {name: _keyed(*columns) for name, columns in found.items()}

    def _protocols(self, layers: dict[int, list[str]], parts: set[int]) -> Iterator[tuple[int, str]]:
        """The layers of each frame; `parts` carry a piece of a message, or repeat one, and show no protocol of it."""
        inside = {f: "http" for name in ("request_in", "response_in") for f in self.http[name].to_pylist()}
        bodies, kinds = (dict(self.bodies.get(f"http.{name}", ())) for name in ("file_data", "content_type"))
        for frame in inside.keys() & bodies.keys():
            kind = kinds.get(frame, "").partition(";")[0].strip().lower()
            inside[frame] = "http:" + _MEDIA.get(kind, "media" if kind else "data")
        for name in ("request_in", "response_in"):
            inside |= dict.fromkeys(self.dns_over_tcp[name].to_pylist(), "dns")
        for frame, names in layers.items():
            below = names[: names.index("tcp") + 1] if "tcp" in names and (frame in inside or frame in parts) else names
            yield frame, ":".join([*below, inside[frame]] if frame in inside else below)

    @cached_property
    def bodies(self) -> dict[str, list[tuple[int, Any]]]:
        """Fields of HTTP/1 with those of the bodies."""
        from latpcap.reading.filters.heads import values

        whole = self.capture.unfiltered
        return values(whole, self.http, whole.arrow("events"), bodies=True)

    @cached_property
    def heads(self) -> dict[str, Keyed]:
        """Header fields of HTTP/1 by their names."""
        from latpcap.reading.filters.heads import BODIES, CHUNKS, values

        whole = self.capture.unfiltered
        with_bodies = bool((BODIES.keys() | CHUNKS.keys()) & self.wanted)
        found = self.bodies if with_bodies else values(whole, self.http, whole.arrow("events"))
        return {
            name: _keyed([frame for frame, _ in rows], [value for _, value in rows]) for name, rows in found.items()
        }

    def head(self, name: str) -> list[Column | Keyed]:
        """The values of a header field."""
        return [self.heads.get(name) or _keyed([], [])]

    def of_records(self) -> list[int] | None:
        """The frames whose bytes are read; None for all."""
        return [int(frame) for frame in self.events["frame"].to_pylist()]

    def shown(self, name: str) -> list[Column | Keyed]:
        """The values of a field that is read from the frames' bytes."""
        return [self.dissected[name]]

    @cached_property
    def http(self) -> pa.Table:
        """HTTP's exchanges with the frames that completed request and answer."""
        whole = self.capture.unfiltered
        return completed(whole.arrow("exchanges"), whole.arrow("events"), "http")

    @cached_property
    def dns_over_tcp(self) -> pa.Table:
        """Exchanges of DNS with the frames that completed question and answer."""
        whole = self.capture.unfiltered
        return completed(whole.arrow("exchanges"), whole.arrow("events"), "dns")
        """Questions to name servers with `request_in`, `response_in`, `target`, `status` and `took`, in ns."""

    @cached_property
    def dns(self) -> pa.Table:
        """Questions to name servers with `request_in`, `response_in`, `target`, `status` and `took`, in ns."""
        found = self.dns_over_tcp
        return found.append_column("took", between(found, self.capture.unfiltered.arrow("events")))

    def udp(self, port: str) -> pa.ChunkedArray:
        """The UDP port of each frame, "sport" or "dport": a TCP segment has none."""
        return _nulls("int64", self.events.num_rows)

    @cached_property
    def flags(self) -> pa.ChunkedArray:
        """The flag bits as a number."""
        return mapped(self.events["flags"], _bits, "int64")

    @cached_property
    def frames(self) -> dict[str, pa.Array]:
        """Length and time of every frame, by a second reading; aligned with the events."""
        return of_frames(self.capture, self.events["frame"])

    @cached_property
    def headers(self) -> pa.Table:
        """What headers say beside the events, by a second reading; aligned with them."""
        from latpcap.reading.rereadable import headers

        return headers(self.capture, self.events)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column of `events`."""
        return self.events[name]

    def nanos(self, name: str) -> pa.ChunkedArray:
        """A column in ms as whole ns."""
        import pyarrow.compute as pc

        return pc.round(pc.multiply(self.events[name], 1e6)).cast("int64")

    @cached_property
    def times(self) -> pa.ChunkedArray:
        """When each segment was captured, in ns since 1970."""
        return self.events["time"].cast("int64")


class Datagrams(Source):
    """The source of frames of `lookups` over UDP: a row for each question and answer, without what only TCP has."""

    def __init__(self, capture: Recorded):
        import pyarrow as pa
        import pyarrow.compute as pc

        table = capture.arrow("lookups")
        over_udp = pc.and_(pc.is_null(table["stream"]), pc.greater(table["server_port"], 0))  # no ARP, no NDP
        self.lookups = table.filter(over_udp)
        requests, answers = (self._side(capture, way) for way in ("request", "response"))
        both = pa.concat_tables([requests, answers], promote_options="default").sort_by("frame")
        schema = capture.arrow("events").schema
        columns = [both[f.name] if f.name in _OF_DATAGRAMS else _nulls(f.type, both.num_rows) for f in schema]
        self.ports = both
        super().__init__(capture, pa.table(columns, names=schema.names))

    def _side(self, capture: Recorded, way: str) -> pa.Table:
        """Frame, time, addresses and ports of the questions, or of the answers that came."""
        import pyarrow.compute as pc

        rows = self.lookups.filter(pc.is_valid(self.lookups[f"{way}_frame"]))
        asks = way == "request"
        here, there = ("client", "server") if asks else ("server", "client")
        named = {"frame": f"{way}_frame", "time": "start" if asks else "end", "src": here, "dst": there}
        named |= {"sport": f"{here}_port", "dport": f"{there}_port"}
        table = rows.select(list(named.values())).rename_columns(list(named))
        for name in ("src", "dst"):
            table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
        return table

    @cached_property
    def http(self) -> pa.Table:
        """None."""
        return super().http[:0]

    @cached_property
    def dns(self) -> pa.Table:
        """The lookups themselves, without requests to other services."""
        import pyarrow as pa
        import pyarrow.compute as pc

        services = pc.is_in(self.lookups["method"].cast("string"), pa.array(SERVICES))
        table = self.lookups.filter(pc.invert(services))
        names = {"request_frame": "request_in", "response_frame": "response_in"}
        start, end = (table[name].cast("int64") for name in ("start", "end"))
        took = pc.subtract(end, start)
        chosen = table.select(["request_frame", "response_frame", "target", "status"])
        return chosen.rename_columns([names.get(n, n) for n in chosen.column_names]).append_column("took", took)

    def udp(self, port: str) -> pa.ChunkedArray:
        """The UDP port of each frame."""
        return self.ports[port].cast("int64")


class Frames(Source):
    """The source of every frame of the capture; what only TCP has is there for the frames of `events`."""

    whole = True

    def __init__(self, capture: Recorded):
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        events = capture.arrow("events")
        heads = np.frombuffer(b"".join(capture.heads()), "<i8").reshape(-1, 3)
        frames = pa.array(np.arange(1, len(heads) + 1, dtype=np.uint64)).cast(events.schema.field("frame").type)
        table = events.take(pc.index_in(frames, value_set=events["frame"].combine_chunks()))
        kind = events.schema.field("time").type
        named = {"frame": frames, "time": pa.array(heads[:, 0]).cast(kind)}
        for name, column in named.items():
            table = table.set_column(table.column_names.index(name), name, pa.chunked_array([column]))
        super().__init__(capture, table)

    def of_records(self) -> list[int] | None:
        """All of them."""
        return None

    @cached_property
    def dns(self) -> pa.Table:
        """Questions over TCP and UDP."""
        import pyarrow as pa

        both = [super().dns, Datagrams(self.capture).dns]
        names = ["request_in", "response_in", "target", "status", "took"]
        parts = [table.select(names) for table in both]
        return pa.concat_tables([part.cast(parts[0].schema) for part in parts])


def _keyed(frames: list[int], values: list[Any]) -> Keyed:
    import pyarrow as pa

    kind = pa.large_binary() if values and isinstance(values[0], bytes) else None
    held = pa.array(values, kind) if values else pa.array([], pa.int64())
    return Keyed(pa.chunked_array([pa.array(frames, pa.uint64())]), pa.chunked_array([held]))


def _above(shown: dict[str, list[Any]]) -> list[str]:
    """What a TCP segment carries, by its port; HTTP and DNS come from their tables, TLS from its records."""
    if "tcp.payload" not in shown or shown["layers"][-1] != "tcp":
        return []
    return [next((_ABOVE_TCP[port] for port in sorted(shown["tcp.port"][-2:]) if port in _ABOVE_TCP), "data")]


def ports_of(protocol: str) -> list[tuple[str, int]]:
    """The ports at which Wireshark expects a protocol, with "tcp" or "udp"."""
    from latpcap.reading.filters.dissect import ABOVE_UDP

    ways = (("tcp", _ABOVE_TCP), ("udp", ABOVE_UDP))
    return [(way, port) for way, names in ways for port, name in names.items() if name == protocol]


def _repeats(events: pa.Table) -> set[int]:
    """Frames with bytes that were seen before, or that a keep-alive has."""
    import pyarrow.compute as pc

    names = ("retransmission", "fast_retransmission", "spurious_retransmission", "keep_alive")
    marked = functools.reduce(pc.or_, (events[name] for name in names))
    return set(events["frame"].filter(pc.and_(marked, pc.greater(events["len"], 0))).to_pylist())


_OF_DATAGRAMS = ("frame", "time", "src", "dst")


def _nulls(kind: Any, rows: int) -> pa.ChunkedArray:
    import pyarrow as pa

    return pa.chunked_array([pa.nulls(rows, kind if isinstance(kind, pa.DataType) else pa.type_for_alias(kind))])


def mapped(column: pa.ChunkedArray, of: Callable[[str], Any], to: str) -> pa.ChunkedArray:
    """A dictionary column through a function of its words, each called once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = []
    for chunk in column.chunks:
        if not pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_encode()
        words = pa.array([of(word) for word in chunk.dictionary.to_pylist()], to)
        chunks.append(pc.take(words, chunk.indices))
    return pa.chunked_array(chunks, to)


def _bits(label: str) -> int:
    return sum(_LABELS.get(part, 0) for part in label.split(", "))


def of_frames(capture: Recorded, frames: pa.ChunkedArray) -> dict[str, pa.Array]:
    """Original and captured length, and times since the first and the previous frame, for these frames."""
    import numpy as np
    import pyarrow as pa

    table = np.frombuffer(b"".join(capture.heads()), "<i8").reshape(-1, 3)
    times, rows = table[:, 0], frames.to_numpy().astype(np.int64) - 1
    since = {"time_relative": times - times[:1], "time_delta": np.diff(times, prepend=times[:1])}
    columns = {**since, "len": table[:, 1], "cap_len": table[:, 2]}
    return {name: pa.array(column[rows]) for name, column in columns.items()}


def between(table: pa.Table, events: pa.Table) -> pa.ChunkedArray:
    """From the frame that completed each request to that of its answer, in ns; null where one is not known."""
    import pyarrow.compute as pc

    frames, times = events["frame"].combine_chunks(), events["time"].cast("int64")
    begin, end = (pc.take(times, pc.index_in(table[name], value_set=frames)) for name in ("request_in", "response_in"))
    return pc.subtract(end, begin)
