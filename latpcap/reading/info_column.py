"""The text of Wireshark's columns Protocol and Info for TCP, HTTP/1, DNS and plain UDP.

Reads the frames again; relative sequence numbers, analysis marks and the frames that complete messages come from the
tables. Frames of other protocols have no text.
"""

from __future__ import annotations

import bisect
import contextlib
import struct
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from latpcap.reading.filters.dissect import Frame, name_at
from latpcap.reading.filters.fields import FIELDS
from latpcap.reading.filters.heads import data_frames
from latpcap.reading.filters.http import completed
from latpcap.reading.filters.source import Column, Keyed, Source
from latpcap.reading.other_packets import NAMED_PORTS

if TYPE_CHECKING:
    from latpcap.reading.rereadable import Recorded

_MARKS = {
    "reused_ports": "TCP Port numbers reused", "retransmission": "TCP Retransmission",
    "fast_retransmission": "TCP Fast Retransmission", "spurious_retransmission": "TCP Spurious Retransmission",
    "out_of_order": "TCP Out-Of-Order", "lost_segment": "TCP Previous segment not captured",
    "ack_lost_segment": "TCP ACKed unseen segment", "window_update": "TCP Window Update",
    "window_full": "TCP Window Full", "keep_alive": "TCP Keep-Alive", "keep_alive_ack": "TCP Keep-Alive ACK",
    "duplicate_ack": "TCP Dup ACK", "zero_window_probe": "TCP ZeroWindowProbe", "zero_window": "TCP ZeroWindow",
    "zero_window_probe_ack": "TCP ZeroWindowProbeAck",
}  # fmt: skip
"""Wireshark's text of each mark, in the order in which the marks are prepended to the column Info."""
_TYPES = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV", 65: "HTTPS"}
_RCODES = {1: "Format error", 2: "Server failure", 3: "No such name", 4: "Not implemented", 5: "Refused"}
_REASSEMBLED = " [TCP segment of a reassembled PDU]"
_END_OF_HEAD = b"\r\n\r\n"
_SACK = " \0"
"""Placeholder for the SACK edges, which `events` has as relative numbers."""
_CHUNKED = "\0"
"""Prefix of the first line of a chunked message; every frame of such a message shows that line."""


def info_texts(capture: Recorded) -> dict[int, tuple[str, str]]:
    """Return the texts of Protocol and Info by frame, for all frames of TCP, DNS and plain UDP."""
    unfiltered = capture.unfiltered
    events = unfiltered.arrow("events")
    source = Source(unfiltered, events)
    http, pieces = _http(unfiltered, source)
    marks = {name: events[name].to_pylist() for name in _MARKS}
    columns = ("frame", "sport", "dport", "flags", "seq", "ack", "window", "len")
    rows = {
        row[0]: (index, row)
        for index, row in enumerate(zip(*(events[column].to_pylist() for column in columns), strict=True))
    }
    duplicates = [dict(_pairs(FIELDS[f"tcp.analysis.duplicate_ack_{what}"].get(source))) for what in ("frame", "num")]
    sacks = events["sack"].to_pylist()
    texts: dict[int, tuple[str, str]] = {}
    for record in unfiltered.records():
        dissected = _Seen(None, None)
        with contextlib.suppress(IndexError, struct.error):
            dissected.link(record.data, record.link)
        if record.frame in http:
            texts[record.frame] = "HTTP", http[record.frame]
        elif (line := pieces.get(record.frame)) and (_END_OF_HEAD in dissected.payload or line.startswith(_CHUNKED)):
            texts[record.frame] = "TCP", line.removeprefix(_CHUNKED) + _REASSEMBLED
        elif record.frame in rows:
            index, (_, sport, dport, flags, seq, ack, window, length) = rows[record.frame]
            numbers = f"Seq={seq % 2**32}" + (f" Ack={ack % 2**32}" if "ACK" in flags.split(", ") else "")
            edges = "".join(f" SLE={part['left']} SRE={part['right']}" for part in sacks[index] or ())
            options = dissected.options_text.replace(_SACK, edges)
            text = f"{sport} → {dport} [{flags}] {numbers} Win={window} Len={length}{options}"
            is_special = marks["fast_retransmission"][index] or marks["spurious_retransmission"][index]
            for name, mark in _MARKS.items():
                if marks[name][index] and not (name == "retransmission" and is_special):
                    if name == "duplicate_ack":
                        mark += f" {duplicates[0].get(record.frame)}#{duplicates[1].get(record.frame)}"
                    text = f"[{mark}] {text}"
            texts[record.frame] = "TCP", text + (_REASSEMBLED if record.frame in pieces else "")
        elif dissected.other_text:
            texts[record.frame] = dissected.other_text
    return texts


def _http(capture: Recorded, source: Source) -> tuple[dict[int, str], dict[int, str]]:
    """Return the first line of each HTTP message by the frame that completes it, and the lines of its other frames.

    The frame with the message's head shows the first line if the head is complete in it; later frames have "".
    """
    rows = completed(capture.arrow("exchanges"), capture.arrow("events"), "http").to_pylist()
    if not rows:
        return {}, {}
    names = ("request.version", "response.version", "response.phrase", "content_type", "transfer_encoding")
    heads = {name: dict(_pairs(source.head(f"http.{name}"))) for name in names}
    lines: dict[int, str] = {}
    spans: list[tuple[int, bool, int, int, str]] = []
    for row in rows:
        for client, first, last in (
            (True, row["request_first_frame"], row["request_in"]),
            (False, row["response_first_frame"], row["response_in"]),
        ):
            if first is None or last is None:
                continue
            if client:
                line = f"{row['method']} {row['target']} {heads['request.version'].get(last, 'HTTP/1.1')} "
            else:
                version, phrase = (heads[f"response.{part}"].get(last, "") for part in ("version", "phrase"))
                line = f"{version} {row['status']} {phrase} "
            content_type = heads["content_type"].get(last, "").partition(";")[0].strip().lower()
            lines[last] = f"{line} ({content_type})" if content_type else line
            chunked = "chunked" in heads["transfer_encoding"].get(last, "").lower()
            spans.append((row["stream"], client, first, last, _CHUNKED + line if chunked else line))
    return lines, dict(_parts(capture, spans))


def _pairs(columns: list[Column | Keyed]) -> Iterator[tuple[int, Any]]:
    for keyed in columns:
        if isinstance(keyed, Keyed):
            yield from zip(keyed.frames.to_pylist(), keyed.values.to_pylist(), strict=True)


def _parts(capture: Recorded, spans: list[tuple[int, bool, int, int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the frames with data of these messages, except each message's last one, with their line."""
    sides = data_frames(capture.arrow("events"), {(stream, client) for stream, client, *_ in spans})
    for stream, client, first, last, line in spans:
        side = sides.get((stream, client), [])
        for frame in side[bisect.bisect_left(side, first) : bisect.bisect_left(side, last)]:
            yield frame, line if frame == first or line.startswith(_CHUNKED) else ""


class _Seen(Frame):
    """Collects the texts of a frame's TCP options and of its DNS or UDP header."""

    options_text = ""
    payload = b""
    other_text: tuple[str, str] | None = None

    def add(self, name: str, value: object) -> None:
        """Ignore all fields."""

    def tcp(self, data: bytes, depth: int) -> None:
        if not self.quoted:
            size = (data[12] >> 4) * 4
            self.payload = data[size:]
            self.options_text = "".join(f" {text}" for text in _options(data[20:size]))

    def udp(self, data: bytes, depth: int) -> None:
        source, target, length = struct.unpack_from(">HHH", data)
        if not self.quoted and min(source, target) not in NAMED_PORTS:
            self.other_text = "UDP", f"{source} → {target} Len={max(0, length - 8)}"
        super().udp(data, depth)

    def dns(self, data: bytes, protocol: str) -> None:
        if not self.quoted:
            self.other_text = {"dns": "DNS", "mdns": "MDNS", "llmnr": "LLMNR"}[protocol], _dns(data)


def _options(data: bytes) -> Iterator[str]:
    """Yield Wireshark's text of each TCP option."""
    offset = 0
    while offset < len(data) and data[offset]:
        option = data[offset]
        if option == 1:
            offset += 1
            continue
        size = data[offset + 1]
        value = data[offset + 2 : offset + size]
        if option == 2:
            yield f"MSS={int.from_bytes(value, 'big')}"
        elif option == 3:
            yield f"WS={1 << min(value[0], 14)}"
        elif option == 4:
            yield "SACK_PERM"
        elif option == 5:
            yield _SACK[1:]
        elif option == 8:
            yield "TSval={} TSecr={}".format(*struct.unpack(">II", value))
        offset += max(size, 2)


def _dns(data: bytes) -> str:
    """Return Wireshark's text of a DNS message."""
    ident, flags, questions, answers, servers, _ = struct.unpack_from(">HHHHHH", data)
    parts = [f"Standard query{' response' if flags >> 15 else ''} 0x{ident:04x}"]
    if flags >> 15 and (code := flags & 15):
        parts.append(_RCODES.get(code, f"Unknown ({code})"))
    offset = 12
    for _ in range(questions):
        name, offset = name_at(data, offset)
        parts.append(f"{_TYPES.get(struct.unpack_from('>H', data, offset)[0], 'Unknown')} {name or '<Root>'}")
        offset += 4
    for _ in range(answers + servers):
        name, offset = name_at(data, offset)
        record_type, size = struct.unpack_from(">H", data, offset)[0], struct.unpack_from(">H", data, offset + 8)[0]
        offset += 10
        word, value = _TYPES.get(record_type, "Unknown"), data[offset : offset + size]
        if record_type == 1:
            word += f" {IPv4Address(value)}"
        elif record_type == 28:
            word += f" {IPv6Address(value)}"
        elif record_type in (2, 5, 6, 12):
            word += f" {name_at(data, offset)[0] or '<Root>'}"
        elif record_type == 15:
            word += f" {struct.unpack_from('>H', data, offset)[0]} {name_at(data, offset + 2)[0]}"
        parts.append(word)
        offset += size
    return " ".join(parts)
