"""Builds packet headers (IP, UDP, TCP, ICMP, ARP) from the values that a text shows, and a pcapng of such frames.

A frame holds the bytes that are known from the text; the rest of the packet counts as not captured.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
ICMP, IPIP, TCP, UDP, IPV6, GRE, ICMP6 = 1, 4, 6, 17, 41, 47, 58
"""Numbers of protocols above IP."""
IPV4_TYPE, ARP_TYPE, IPV6_TYPE, VLAN_TYPE = 0x0800, 0x0806, 0x86DD, 0x8100
"""EtherType numbers."""
FLAG_BITS = {"FIN": 0x01, "SYN": 0x02, "RST": 0x04, "PSH": 0x08, "ACK": 0x10, "URG": 0x20, "ECE": 0x40, "CWR": 0x80}
MOD = 1 << 32
"""Modulus of TCP's sequence numbers."""
MAX_LENGTH = 262_144
"""Upper bound on the bytes of a frame; the capture's snapshot length."""
RAW, ETHERNET = 0, 1
"""Interface numbers in the capture: raw IP, and Ethernet."""
_LINKTYPES = (101, 1)
"""LINKTYPE_ numbers of the interfaces, in their order."""
_BLOCK_BYTES = 1 << 17
"""Size from which a block of the capture is passed on."""
_NO_MAC = bytes(6)


@dataclass
class Part:
    """Bytes known from the text, and the number of unknown bytes after them."""

    known: bytes = b""
    missing: int = 0

    @property
    def wire(self) -> int:
        """The length on the wire."""
        return len(self.known) + self.missing

    def behind(self, header: bytes) -> Part:
        """Return this part with a header before it."""
        return Part(header + self.known, self.missing)


@dataclass
class Frame:
    """One packet of the text: time in ns since 1970, bytes, and its interface (RAW or ETHERNET)."""

    ns: int
    part: Part
    link: int = RAW


@dataclass
class Network:
    """The fields of an IPv4 or IPv6 header."""

    source: Address
    destination: Address
    ttl: int = 64
    ident: int = 0
    dont_fragment: bool = True
    tos: int = 0
    more: bool = False
    offset: int = 0
    """Offset of a fragment, in bytes."""

    def around(self, protocol: int, inner: Part) -> Part:
        """Return the packet with this header."""
        length = inner.wire
        ttl, source, destination = min(self.ttl, 255), self.source, self.destination
        if source.version == 4:
            total = 20 + length
            word = (self.dont_fragment << 14) | (self.more << 13) | (self.offset // 8 & 0x1FFF)
            if total > 0xFFFF:  # as of TCP segmentation offload
                total = 0
            head = struct.pack(">BBHHHBBH", 0x45, self.tos & 0xFF, total, self.ident & 0xFFFF, word, ttl, protocol, 0)
            head = head[:10] + struct.pack(">H", _checksum(head + source.packed + destination.packed)) + head[12:]
        else:
            first = 6 << 28 | (self.tos & 0xFF) << 20
            head = struct.pack(">IHBB", first, length if length <= 0xFFFF else 0, protocol, ttl)
        return inner.behind(head + source.packed + destination.packed)


@dataclass
class Tcp:
    """The fields of a TCP header; `window` is unscaled, `options` are without padding."""

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
        """Return the segment with this header."""
        options = self.options[:40]
        options += b"\0" * (-len(options) % 4)
        ports = struct.pack(">HH", self.sport & 0xFFFF, self.dport & 0xFFFF)
        numbers = struct.pack(">II", self.seq % MOD, self.ack % MOD)
        flags = struct.pack(">H", (20 + len(options)) // 4 << 12 | self.flags & 0x1FF)
        window_and_sums = struct.pack(">HHH", min(self.window, 0xFFFF), self.checksum & 0xFFFF, self.urgent & 0xFFFF)
        return payload.behind(ports + numbers + flags + window_and_sums + options)


def udp(sport: int, dport: int, payload: Part, checksum: int = 0) -> Part:
    """Return a UDP datagram."""
    length = min(8 + payload.wire, 0xFFFF)
    return payload.behind(struct.pack(">HHHH", sport & 0xFFFF, dport & 0xFFFF, length, checksum & 0xFFFF))


def icmp(icmp_type: int, code: int, second_word: int, payload: Part) -> Part:
    """Return an ICMP or ICMPv6 message; `second_word` is the 32-bit word before its payload."""
    return payload.behind(struct.pack(">BBHI", icmp_type & 0xFF, code & 0xFF, 0, second_word % MOD))


def arp(operation: int, sender: Address, sender_mac: bytes | None, target: Address, target_mac: bytes | None) -> Part:
    """Return an ARP packet for IPv4; operation 1 is a request, 2 a reply. Unknown Ethernet addresses are zero."""
    head = struct.pack(">HHBBH", 1, IPV4_TYPE, 6, 4, operation & 0xFFFF)
    pairs = (sender_mac or _NO_MAC) + sender.packed[:4] + (target_mac or _NO_MAC) + target.packed[:4]
    return Part(head + pairs)


def ethernet(ethertype: int, inner: Part, source: bytes | None = None, destination: bytes | None = None) -> Part:
    """Return an Ethernet frame; unknown addresses are zero."""
    return inner.behind((destination or _NO_MAC) + (source or _NO_MAC) + struct.pack(">H", ethertype))


def option(kind: int, value: bytes = b"") -> bytes:
    """Return one TCP option with a length, which the kinds 0 and 1 lack."""
    return bytes([kind, 2 + len(value)]) + value


def pack_numbers(values: Iterable[int]) -> bytes:
    """Return 32-bit numbers as bytes, modulo 2^32; TCP timestamps and SACK edges."""
    return b"".join((value % MOD).to_bytes(4, "big") for value in values)


def echo_type(version: int, word: str) -> int:
    """Return the ICMP or ICMPv6 type of an echo "request" or "reply"."""
    return {(4, "request"): 8, (4, "reply"): 0, (6, "request"): 128, (6, "reply"): 129}[version, word]


def capture(frames: Iterable[Frame]) -> Iterator[bytes]:
    """Yield the blocks of a pcapng with times in ns and two interfaces: raw IP and Ethernet."""
    blocks = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for linktype in _LINKTYPES:
        options = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)  # if_tsresol: 10^-9
        blocks.append(_block(1, struct.pack("<HHI", linktype, 0, MAX_LENGTH) + options))
    size = 0
    for frame in frames:
        ns = max(frame.ns, 0)
        content = frame.part.known[:MAX_LENGTH]
        wire = max(len(content), min(frame.part.wire, MAX_LENGTH))
        head = struct.pack("<IIIII", frame.link, ns >> 32 & 0xFFFFFFFF, ns & 0xFFFFFFFF, len(content), wire)
        blocks.append(_block(6, head + content + b"\0" * (-len(content) % 4)))
        size += len(blocks[-1])
        if size >= _BLOCK_BYTES:
            yield b"".join(blocks)
            blocks, size = [], 0
    yield b"".join(blocks)


def _block(block_type: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", block_type) + length + body + length


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
