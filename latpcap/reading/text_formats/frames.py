"""Headers of packets, made of the values that a text shows.

Values in, bytes out: IP, UDP, TCP, ICMP and ARP headers, and a pcapng of frames. A frame holds what the text shows; the
rest of it counts as not captured. No text is read here.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
ICMP, IPIP, TCP, UDP, IPV6, GRE, ICMP6 = 1, 4, 6, 17, 41, 47, 58
IPV4_TYPE, ARP_TYPE, IPV6_TYPE, VLAN_TYPE = 0x0800, 0x0806, 0x86DD, 0x8100
FLAG_BITS = {"FIN": 0x01, "SYN": 0x02, "RST": 0x04, "PSH": 0x08, "ACK": 0x10, "URG": 0x20, "ECE": 0x40, "CWR": 0x80}
MOD = 1 << 32
MAX_LENGTH = 262_144
RAW, ETHERNET = 0, 1  # the interfaces of the capture
_LINKTYPES = (101, 1)
_BLOCK_BYTES = 1 << 17
_NO_MAC = bytes(6)


@dataclass
class Part:
    """Bytes that the text shows, and how many more the packet had behind them."""

    held: bytes = b""
    missing: int = 0

    @property
    def wire(self) -> int:
        """How long it was."""
        return len(self.held) + self.missing

    def behind(self, header: bytes) -> Part:
        """This part behind a header."""
        return Part(header + self.held, self.missing)


@dataclass
class Frame:
    """One packet of the text; `link` is one of RAW and ETHERNET."""

    ns: int
    part: Part
    link: int = RAW


@dataclass
class Network:
    """The fields of an IP header."""

    source: Address
    destination: Address
    ttl: int = 64
    ident: int = 0
    dont_fragment: bool = True
    tos: int = 0
    more: bool = False
    offset: int = 0  # of a fragment, in bytes

    def around(self, protocol: int, inner: Part) -> Part:
        """This header before what it carries."""
        length = inner.wire
        ttl, source, destination = min(self.ttl, 255), self.source, self.destination
        if source.version == 4:
            total = 20 + length
            place = (self.dont_fragment << 14) | (self.more << 13) | (self.offset // 8 & 0x1FFF)
            head = struct.pack(
                ">BBHHHBBH",
                0x45,
                self.tos & 0xFF,
                total if total <= 0xFFFF else 0,
                self.ident & 0xFFFF,
                place,
                ttl,
                protocol,
                0,
            )
            head = head[:10] + struct.pack(">H", _checksum(head + source.packed + destination.packed)) + head[12:]
        else:
            first = 6 << 28 | (self.tos & 0xFF) << 20
            head = struct.pack(">IHBB", first, length if length <= 0xFFFF else 0, protocol, ttl)
        return inner.behind(head + source.packed + destination.packed)


@dataclass
class Tcp:
    """The fields of a TCP header; `options` are bytes without padding."""

    sport: int
    dport: int
    seq: int
    ack: int
    flags: int
    window: int
    options: bytes = b""
    checksum: int = 0
    urgent: int = 0

    def before(self, payload: Part) -> Part:
        """This header before its payload."""
        options = self.options[:40]
        options += b"\0" * (-len(options) % 4)
        return payload.behind(
            struct.pack(
                ">HHIIBBHHH",
                self.sport & 0xFFFF,
                self.dport & 0xFFFF,
                self.seq % MOD,
                self.ack % MOD,
                (20 + len(options)) // 4 << 4 | (self.flags >> 8 & 1),
                self.flags & 0xFF,
                min(self.window, 0xFFFF),
                self.checksum & 0xFFFF,
                self.urgent & 0xFFFF,
            )
            + options
        )


def udp(sport: int, dport: int, payload: Part, checksum: int = 0) -> Part:
    """A UDP header before its payload."""
    return payload.behind(
        struct.pack(">HHHH", sport & 0xFFFF, dport & 0xFFFF, min(8 + payload.wire, 0xFFFF), checksum & 0xFFFF)
    )


def icmp(kind: int, code: int, rest: int, payload: Part) -> Part:
    """An ICMP or ICMPv6 message; `rest` are the four bytes before its payload."""
    return payload.behind(struct.pack(">BBHI", kind & 0xFF, code & 0xFF, 0, rest % MOD))


def arp(operation: int, sender: Address, sender_mac: bytes | None, target: Address, target_mac: bytes | None) -> Part:
    """An ARP packet for IPv4; operation 1 asks, 2 answers."""
    return Part(
        struct.pack(">HHBBH", 1, IPV4_TYPE, 6, 4, operation & 0xFFFF)
        + (sender_mac or _NO_MAC)
        + sender.packed[:4]
        + (target_mac or _NO_MAC)
        + target.packed[:4]
    )


def ethernet(kind: int, inner: Part, source: bytes | None = None, destination: bytes | None = None) -> Part:
    """An Ethernet header; addresses that the text does not show are zero."""
    return inner.behind((destination or _NO_MAC) + (source or _NO_MAC) + struct.pack(">H", kind))


def option(kind: int, value: bytes = b"") -> bytes:
    """One TCP option; kinds 0 and 1 have no length."""
    return bytes([kind]) if kind < 2 else bytes([kind, 2 + len(value)]) + value


def capture(frames: Iterable[Frame]) -> Iterator[bytes]:
    """A pcapng with nanoseconds and two interfaces: raw IP and Ethernet."""
    out = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for linktype in _LINKTYPES:
        options = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)  # if_tsresol: 10^-9
        out.append(_block(1, struct.pack("<HHI", linktype, 0, MAX_LENGTH) + options))
    size = 0
    for frame in frames:
        ns = max(frame.ns, 0)
        held = frame.part.held[:MAX_LENGTH]
        wire = max(len(held), min(frame.part.wire, MAX_LENGTH))
        head = struct.pack("<IIIII", frame.link, ns >> 32 & 0xFFFFFFFF, ns & 0xFFFFFFFF, len(held), wire)
        out.append(_block(6, head + held + b"\0" * (-len(held) % 4)))
        size += len(out[-1])
        if size >= _BLOCK_BYTES:
            yield b"".join(out)
            out, size = [], 0
    yield b"".join(out)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
