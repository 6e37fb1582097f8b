"""What did tcpdump print? Its lines, read back as a capture of headers.

Blocks of bytes in, blocks of bytes out: lines of `tcpdump -n` (with `-tt`, `-tttt` or the time of day; `-v`, `-S` and
`-i any` too) become a pcap of headers, one record a printed packet, so that frame n is the n-th packet of the text;
anything else passes as it is. What a line does not tell (payload, checksums, other protocols) is not made up: such
bytes count as not captured.
"""

from __future__ import annotations

import calendar
import ipaddress
import re
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from latpcap.errors import CaptureError

_HEAD_BYTES = 1 << 12
_LINE_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 17
_LINKTYPE_RAW = 101
_SNAPLEN_BYTES = 262_144
_ICMP, _TCP, _UDP = 1, 6, 17
_TIME = rb"(?:\d{1,10}|(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d)\.\d{6,9}"
_START = re.compile(rb"^" + _TIME + rb" ")
_PACKET = re.compile(rb"^" + _TIME + rb" (?:\S+ +(?:In|Out|[BMP]) +)?(?:IP6?|ARP)[ ,]")
_ENDS = re.compile(r"(?:^|\s)(\S+) > (\S+): (.*)", re.S)
_ECHO = re.compile(r"(\S+) > (\S+): ICMP echo (request|reply), id (\d{1,10}), seq (\d{1,10}), length (\d{1,10})")
_FLAGS = re.compile(r"Flags \[([^]]*)\]")
_SEQUENCE = re.compile(r"\bseq (\d{1,10})(?::(\d{1,10}))?")
_ACK = re.compile(r"\back (\d{1,10})")
_WINDOW = re.compile(r"\bwin (\d{1,10})")
_OPTIONS = re.compile(r"options \[([^]]*)\]")
_LENGTH = re.compile(r"\blength (\d{1,10})")
_BRACKETED = re.compile(r"\((\d{1,10})\)\s*$")
_TTL = re.compile(r"\b(?:ttl|hlim) (\d{1,10})")
_IDENT = re.compile(r"\bid (\d{1,10}), offset")
_BITS = {"F": 0x01, "S": 0x02, "R": 0x04, "P": 0x08, ".": 0x10, "U": 0x20, "E": 0x40, "W": 0x80}
_PRINTABLE = tuple(bytes([code]) for code in range(0x20, 0x7F))
_MOD = 1 << 32
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def captured(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Which capture is in these blocks? Text that tcpdump printed as a pcap of headers, anything else as it is.

    CaptureError where the text has packets, but none with addresses and ports in numbers (`tcpdump -n` prints them).
    """
    head = b""
    while len(head) < _HEAD_BYTES and (more := next(blocks, b"")):
        head += more
        if not _like_text(head):
            break
    whole = chain([head] if head else [], blocks)
    if _like_text(head) and any(_PACKET.match(line) for line in head.splitlines()[:20]):
        yield from _Printed(name).capture(whole)
    else:
        yield from whole


def _like_text(head: bytes) -> bool:
    return b"\0" not in head[:_HEAD_BYTES] and head[:1] in _PRINTABLE


@dataclass
class _Side:
    """One sender of a conversation: the number that its printed numbers count from, and where it stands."""

    base: int | None = None
    at: int = 0

    def absolute(self, printed: int) -> int:
        """tcpdump counts from a conversation's first packet, or not at all (-S): what lies nearer to where we are."""
        if self.base is None:
            return printed % _MOD
        counted = (self.base + printed) % _MOD
        return min(counted, printed % _MOD, key=lambda number: _distance(number, self.at))


@dataclass
class _Printed:
    """The text of one run of tcpdump."""

    name: str
    sides: dict[tuple[str, str], _Side] = field(default_factory=dict)
    days: int = 0
    last_s: int = -1
    read: int = 0

    def capture(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """A pcap with nanoseconds, link type raw IP."""
        out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAPLEN_BYTES, _LINKTYPE_RAW)]
        size, packets = 0, 0
        for text in _packets(_lines(blocks)):
            record = self._record(text)
            packets += 1
            out.append(record)
            size += len(record)
            if size >= _BLOCK_BYTES:
                yield b"".join(out)
                out, size = [], 0
        if packets and not self.read:
            reason = "is tcpdump's text without addresses and ports in numbers: print it with `tcpdump -n -tt`"
            raise CaptureError(self.name, reason)
        yield b"".join(out)

    def _record(self, text: str) -> bytes:
        stamp, _, rest = text.partition(" ")
        if "-" in stamp:
            clock, _, rest = rest.partition(" ")
            stamp += " " + clock
        second, nanos = self._instant(stamp)
        data, length = self._packet(rest)
        return struct.pack("<IIII", second & 0xFFFFFFFF, nanos, len(data), length) + data

    def _instant(self, stamp: str) -> tuple[int, int]:
        """Seconds and nanoseconds; a time of day without a date is taken for the first of January 1970."""
        whole, _, part = stamp.partition(".")
        nanos = int(part.ljust(9, "0"))
        if ":" not in whole:
            return int(whole), nanos
        if "-" in whole:
            try:
                return calendar.timegm(time.strptime(whole, "%Y-%m-%d %H:%M:%S")), nanos
            except ValueError:
                return 0, nanos
        hours, minutes, seconds = map(int, whole.split(":"))
        second = hours * 3600 + minutes * 60 + seconds
        if second < self.last_s - 43_200:  # past midnight
            self.days += 1
        self.last_s = second
        return self.days * 86_400 + second, nanos

    def _packet(self, text: str) -> tuple[bytes, int]:
        """The headers that a line tells, and the packet's length; none where it tells no TCP or UDP packet."""
        echo = _ECHO.search(text)
        if echo and (hosts := (_host(echo[1]), _host(echo[2]))) and hosts[0] and hosts[1]:
            self.read += 1
            header = struct.pack(
                ">BBHHH", 8 if echo[3] == "request" else 0, 0, 0, int(echo[4]) & 0xFFFF, int(echo[5]) & 0xFFFF
            )
            payload = max(0, int(echo[6]) - len(header))
            network = _network(hosts[0], hosts[1], _ICMP, len(header) + payload, text)
            return network + header, len(network) + len(header) + payload
        found = _ENDS.search(text)
        ends = found and (_end(found[1]), _end(found[2]))
        if not found or not ends or not ends[0] or not ends[1]:
            return b"", max(1, _number(_LENGTH, text))
        (source, sport), (destination, dport) = ends[0], ends[1]
        self.read += 1
        flags = _FLAGS.search(found[3])
        if flags:
            header, payload = self._tcp(found[1], found[2], flags[1], found[3])
            protocol = _TCP
            header = struct.pack(">HH", sport, dport) + header
        else:
            payload = _number(_LENGTH, found[3]) or _number(_BRACKETED, found[3])
            header = struct.pack(">HHHH", sport, dport, min(8 + payload, 0xFFFF), 0)
            protocol = _UDP
        network = _network(source, destination, protocol, len(header) + payload, text)
        return network + header, len(network) + len(header) + payload

    def _tcp(self, source: str, destination: str, letters: str, text: str) -> tuple[bytes, int]:
        """A TCP header behind its ports, and how many bytes of payload it announces."""
        bits = sum(_BITS.get(letter, 0) for letter in set(letters.replace("none", "")))
        ours = self.sides.setdefault((source, destination), _Side())
        theirs = self.sides.setdefault((destination, source), _Side())
        payload = _number(_LENGTH, text)
        printed, ack = _SEQUENCE.search(text), _ACK.search(text)
        if bits & _BITS["S"]:
            ours.base = None
            if not bits & _BITS["."]:
                theirs.base = None
        sequence = ours.absolute(int(printed[1])) if printed else ours.at
        acknowledged = theirs.absolute(int(ack[1])) if ack else 0
        if ack:  # tcpdump counts from the first packet that acknowledges
            if ours.base is None:
                ours.base = sequence
            if theirs.base is None:
                theirs.base = (acknowledged - 1) % _MOD
                theirs.at = max(theirs.at, acknowledged)
        ours.at = (sequence + payload + bool(bits & (_BITS["S"] | _BITS["F"]))) % _MOD
        options = _options(text, theirs)
        offset = (20 + len(options)) // 4 << 4
        header = struct.pack(
            ">IIBBHHH", sequence, acknowledged, offset, bits, min(_number(_WINDOW, text), 0xFFFF), 0, 0
        )
        return header + options, payload


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
        rest = rest[:_LINE_BYTES]
    if rest:
        yield rest


def _packets(lines: Iterator[bytes]) -> Iterator[str]:
    """A packet's lines joined: `-v` prints two, `-x` its bytes below it (which are passed over)."""
    held: bytes | None = None
    for line in lines:
        if _START.match(line):
            if held is not None:
                yield held.decode("ascii", "replace")
            held = line.rstrip()[:_LINE_BYTES] if _PACKET.match(line) else None
        elif held is not None and line[:1].isspace() and b"0x" not in line[:12] and len(held) < _LINE_BYTES:
            held += b" " + line.strip()
    if held is not None:
        yield held.decode("ascii", "replace")


def _host(text: str) -> Address | None:
    """An address; None for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _end(text: str) -> tuple[Address, int] | None:
    """The address and port of `192.0.2.1.80`; None where it has names or no port."""
    host, _, port = text.rpartition(".")
    address = _host(host)
    return (address, int(port) & 0xFFFF) if address and re.fullmatch("[0-9]{1,5}", port) else None


def _network(
    source: Address,
    destination: Address,
    protocol: int,
    length: int,
    text: str,
) -> bytes:
    """An IP header; TTL and identification where `-v` printed them, else 64 and 0."""
    ttl = min(_number(_TTL, text) or 64, 255)
    if source.version == 4:
        ident = _number(_IDENT, text) & 0xFFFF
        total = 20 + length
        head = struct.pack(">BBHHHBBH", 0x45, 0, total if total <= 0xFFFF else 0, ident, 0x4000, ttl, protocol, 0)
    else:
        head = struct.pack(">IHBB", 6 << 28, length if length <= 0xFFFF else 0, protocol, ttl)
    return head + source.packed + destination.packed


def _options(text: str, theirs: _Side) -> bytes:
    """TCP's options as they were printed, padded to a multiple of four bytes."""
    found = _OPTIONS.search(text)
    out = b""
    for word in found[1].split(",") if found else ():
        name = word.split()[0] if word.strip() else ""
        numbers = [int(value) for value in re.findall(r"\d{1,10}", word)]
        if name == "mss" and numbers:
            out += struct.pack(">BBH", 2, 4, numbers[0] & 0xFFFF)
        elif name == "wscale" and numbers:
            out += struct.pack(">BBB", 3, 3, numbers[0] & 0xFF)
        elif name == "sackOK":
            out += b"\x04\x02"
        elif name == "TS" and len(numbers) == 2:
            out += struct.pack(">BBII", 8, 10, numbers[0] % _MOD, numbers[1] % _MOD)
        elif name == "sack" and len(numbers) >= 3:
            edges = [theirs.absolute(number) for number in numbers[1:9]]
            edges = edges[: len(edges) // 2 * 2]
            out += struct.pack(f">BB{len(edges)}I", 5, 2 + 4 * len(edges), *edges)
        elif name == "nop":
            out += b"\x01"
    out = out[:40]
    return out + b"\0" * (-len(out) % 4)


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return min(int(found[1]), _SNAPLEN_BYTES) if found else 0


def _distance(one: int, other: int) -> int:
    ahead = (one - other) % _MOD
    return min(ahead, _MOD - ahead)
