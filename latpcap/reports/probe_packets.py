"""Finds probes (echo requests, SYNs, UDP datagrams) and the answer of each.

The table `probes` has the pairs that the core finds. This module reads the packets again for fields that tools print
and tables lack: TTLs, lengths, identifications, windows, and probes by UDP.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from latpcap import arrays
from latpcap.errors import CaptureError
from latpcap.lazy import np
from latpcap.reading.reread import Record, packet
from latpcap.tables import Needed, TableSlice

if TYPE_CHECKING:
    from latpcap.reports.report_text import Subject

ICMP, TCP, UDP, ICMP6 = 1, 6, 17, 58
"""Numbers of protocols above IP."""
NAMES = {ICMP: "icmp", ICMP6: "icmp", TCP: "tcp", UDP: "udp"}
ECHO = {(ICMP, 8): "request", (ICMP, 0): "reply", (ICMP6, 128): "request", (ICMP6, 129): "reply"}
ERRORS = {(ICMP, 3): "unreachable", (ICMP, 11): "time_exceeded", (ICMP6, 1): "unreachable", (ICMP6, 3): "time_exceeded"}
MAX_FRAMES = 2_000_000
"""Upper bound on the frames read again; a probing tool sends some dozens."""


@dataclass
class Ip:
    """The fields of an IP packet that are used here."""

    src: str
    dst: str
    protocol: int
    ttl: int
    number: int
    """Identification; 0 for IPv6."""
    length: int
    """Total length in bytes."""
    keep: bool
    """The flag "don't fragment"."""
    more: bool
    """The flag "more fragments"."""
    offset: int
    """Fragment offset in bytes."""
    body: bytes
    """The bytes after the header."""


@dataclass
class Answer:
    """The answer to a probe."""

    kind: str
    code: int
    frame: int
    time: int
    ip: Ip
    flags: str = ""
    window: int = 0
    size: int = 0


@dataclass
class Probe:
    """A probe and its first answer; `id` is the identifier of an echo request, else None."""

    kind: str
    frame: int
    time: int
    ip: Ip
    sport: int
    dport: int
    id: int | None
    seq: int
    size: int
    answer: Answer | None = None
    repeats: int = 0

    @property
    def rtt_ms(self) -> float | None:
        """Time from the probe to its answer at the capture; None without an answer."""
        return None if self.answer is None else (self.answer.time - self.time) / 1e6


def needed() -> Needed:
    """Return the columns that `probes` reads."""
    return {"events": TableSlice(("frame", "flags"))}


def probes(capture: Subject) -> list[Probe]:
    """Return the probes of a capture in order. CaptureError where its bytes cannot be read again."""
    return list(
        paired(
            (record.frame, record.time_ns, ip) for record in capture.records(_frames(capture)) if (ip := _ip(record))
        )
    )


def _frames(capture: Subject) -> list[int]:
    """Return the frames that may be probes or answers: all but TCP segments without SYN and RST."""
    events = capture.arrow("events")
    flags, words = arrays.codes(events, "flags")
    is_plain = ~np.isin(flags, [code for code, word in enumerate(words) if "SYN" in word or "RST" in word])
    other_frames = np.setdiff1d(np.arange(1, capture.frames + 1), arrays.numbers(events, "frame")[is_plain])
    return [int(frame) for frame in other_frames[:MAX_FRAMES]]


def _ip(record: Record) -> Ip | None:
    """Return the outermost IP packet of a frame; None if it has none."""
    import dpkt

    try:
        layer: Any = packet(record, "")
    except CaptureError:
        return None
    while not isinstance(layer, (dpkt.ip.IP, dpkt.ip6.IP6, bytes)) and hasattr(layer, "data"):
        layer = layer.data
    try:
        return None if isinstance(layer, bytes) or not hasattr(layer, "data") else header(bytes(layer))
    except (dpkt.Error, struct.error, ValueError):
        return None


def header(data: bytes) -> Ip | None:
    """Parse an IP header and the bytes after it; None if the header is cut."""
    if len(data) >= 20 and data[0] >> 4 == 4:
        _, _, total, number, off, ttl, protocol, _, src, dst = struct.unpack_from(">BBHHHBBH4s4s", data)
        size, end = (data[0] & 15) * 4, total or len(data)
        names = str(ip_address(src)), str(ip_address(dst))
        where = bool(off & 0x4000), bool(off & 0x2000), (off & 0x1FFF) * 8
        return Ip(*names, protocol, ttl, number, total, *where, data[size:end])
    if len(data) >= 40 and data[0] >> 4 == 6:
        _, length, protocol, ttl, src, dst = struct.unpack_from(">IHBB16s16s", data)
        names = str(ip_address(src)), str(ip_address(dst))
        return Ip(*names, protocol, ttl, 0, length + 40, True, False, 0, data[40 : 40 + length])
    return None


Key = tuple[Any, ...]


def paired(packets: Iterable[tuple[int, int, Ip]]) -> Iterator[Probe]:
    """Yield probes with their answers, in the order of sending."""
    sent: list[Probe] = []
    by_key: dict[Key, Probe] = {}
    parts: dict[Key, Probe | Answer] = {}
    for frame, time, ip in packets:
        if ip.offset:
            first_fragment = parts.get((ip.src, ip.dst, ip.number))
            if first_fragment is not None:
                first_fragment.size += len(ip.body)
                if isinstance(first_fragment, Answer) and not ip.more:
                    first_fragment.time = time
            continue
        probe_sent = _probe(frame, time, ip)
        if probe_sent is not None:
            key = _key(ip, ip.body)
            earlier = by_key.get(key) if key else None
            if earlier is not None and earlier.answer is None and probe_sent.kind == "tcp":
                earlier.repeats += 1
                earlier.time, earlier.frame = time, frame
                continue
            sent.append(probe_sent)
            if key:
                by_key[key] = probe_sent
            if ip.more:
                parts[ip.src, ip.dst, ip.number] = probe_sent
        match = _answer(frame, time, ip, by_key)
        if match is not None:
            probe, answer = match
            if probe.answer is None:
                probe.answer = answer
            if ip.more:
                parts[ip.src, ip.dst, ip.number] = answer
    yield from sent


def _key(ip: Ip, body: bytes) -> Key | None:
    """Return the key of a probe, from the first eight bytes of its body, which ICMP errors quote; None if it has
    fewer.
    """
    if len(body) < 8:
        return None
    if ip.protocol in (ICMP, ICMP6):
        return ("icmp", ip.src, ip.dst, *struct.unpack_from(">HH", body, 4))
    if ip.protocol == TCP:
        return ("tcp", ip.src, ip.dst, *struct.unpack_from(">HHI", body))
    if ip.protocol == UDP:
        return ("udp", ip.src, ip.dst, *struct.unpack_from(">HH", body))
    return None


def _probe(frame: int, time: int, ip: Ip) -> Probe | None:
    body = ip.body
    if ip.protocol in (ICMP, ICMP6) and len(body) >= 8 and ECHO.get((ip.protocol, body[0])) == "request":
        number, seq = struct.unpack_from(">HH", body, 4)
        return Probe("icmp", frame, time, ip, 0, 0, number, seq, len(body))
    if ip.protocol == TCP and len(body) >= 14 and body[13] & 0x17 == 0x02:  # SYN, no ACK, FIN, RST
        sport, dport, seq = struct.unpack_from(">HHI", body)
        return Probe("tcp", frame, time, ip, sport, dport, None, seq, len(body))
    if ip.protocol == UDP and len(body) >= 8:
        sport, dport = struct.unpack_from(">HH", body)
        return Probe("udp", frame, time, ip, sport, dport, None, ip.number, len(body))
    return None


def _answer(frame: int, time: int, ip: Ip, sent: dict[Key, Probe]) -> tuple[Probe, Answer] | None:
    """Return the probe that this packet answers, with the answer; None if it answers none of `sent`."""
    body = ip.body
    if ip.protocol in (ICMP, ICMP6) and len(body) >= 8:
        if ECHO.get((ip.protocol, body[0])) == "reply":
            probe = sent.get(("icmp", ip.dst, ip.src, *struct.unpack_from(">HH", body, 4)))
            return (probe, Answer("reply", 0, frame, time, ip, size=len(body))) if probe else None
        word = ERRORS.get((ip.protocol, body[0]))
        quoted = header(body[8:] + b"\0" * 8) if word else None
        key = _key(quoted, quoted.body) if quoted else None
        probe = sent.get(key) if key else None
        return (probe, Answer(word or "", body[1], frame, time, ip, size=len(body))) if probe else None
    if ip.protocol == TCP and len(body) >= 16 and body[13] & 0x10 and body[13] & 0x06:  # SYN, ACK or RST, ACK
        sport, dport, _, ack = struct.unpack_from(">HHII", body)
        probe = sent.get(("tcp", ip.dst, ip.src, dport, sport, ack - 1 & 0xFFFFFFFF))
        if probe is None:
            return None
        flags = "".join(name for bit, name in ((4, "R"), (2, "S"), (16, "A")) if body[13] & bit)
        kind = "syn_ack" if body[13] & 2 else "rst"
        window = struct.unpack_from(">H", body, 14)[0]
        return probe, Answer(kind, 0, frame, time, ip, flags, window, len(body))
    return None
