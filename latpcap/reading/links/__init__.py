"""Readers of rare link types and tunnels: find the IP packet in a frame, or a layer that contains it.

The core reads the common link types itself and calls `read(layer, number, data)` for all others, frame by frame. A link
type is added by adding its reader to `READERS`:

    latpcap.reading.links.READERS["link", 147] = lambda frame: frame[4:]  # LINKTYPE_USER0: four bytes, then IP
    latpcap.reading.links.READERS["link", 148] = lambda frame: ("link", 1, frame[4:])  # four bytes, then Ethernet
"""

from __future__ import annotations

import struct
import zlib

from latpcap.reading.links import juniper, wifi, wrapped
from latpcap.reading.links.parts import Found, Reader, by_version, ethertype, fixed, link, llc, need, typed

__all__ = ["READERS", "Found", "read"]

_MAX_PACKET_BYTES = 65_575
"""Length of the longest IPv6 packet without a jumbo payload."""


def read(layer: str, number: int, data: bytes) -> Found:
    """Return the IPv4 or IPv6 packet in these bytes, or one of the other values of `Found`. Never raises.

    `layer` is the kind of `number`: "link" (LINKTYPE_), "ethertype", "ip" (IP protocol) or "capwap" (its binding).
    """
    reader = READERS.get((layer, number))
    if reader is None:
        return None
    try:
        return reader(data)
    except (IndexError, ValueError, struct.error):
        return "cut"


def _token_ring(data: bytes) -> Found:
    """IEEE 802.5: the first bit of the source address shows whether routing information follows the addresses."""
    head = need(data, 14)
    if head[1] & 0xC0 != 0x40:
        return b""
    route = data[14] & 0x1F if head[8] & 0x80 else 0
    return llc(data[14 + route :])


def _fddi(data: bytes) -> Found:
    return llc(data[13:]) if need(data, 13)[0] & 0xF0 == 0x50 else b""


def _arcnet(type_at: int) -> Reader:
    """ARCnet: RFC 1201 puts a split flag and a sequence number before the packet, RFC 1051 does not."""

    def reader(data: bytes) -> Found:
        protocol = data[type_at]
        if protocol == 0xF0:
            return data[type_at + 1 :]
        if protocol not in (0xC4, 0xD4):
            return b""
        flag = data[type_at + 1]
        if flag == 0xFF:  # an exception packet has four bytes more
            return data[type_at + 8 :]
        return "cut" if flag else data[type_at + 4 :]

    return reader


def _frame_relay(data: bytes) -> Found:
    """Frame Relay: a Q.922 address, then a network layer identifier (RFC 2427) or Cisco's ethertype."""
    offset = 1
    while not data[offset - 1] & 1:
        offset += 1
    if data[offset] == 3:
        pad = 1 if data[offset + 1] == 0 else 0
        protocol, payload = data[offset + 1 + pad], data[offset + 2 + pad :]
        if protocol in (0xCC, 0x8E):
            return payload
        return ethertype(int.from_bytes(payload[3:5], "big"), payload[5:]) if protocol == 0x80 else b""
    return ethertype(int.from_bytes(data[offset : offset + 2], "big"), data[offset + 2 :])


def _amateur_radio(data: bytes) -> Found:
    """AX.25: addresses of seven bytes, the last one with its lowest bit set, then control and a protocol number."""
    offset = 14
    while not need(data, offset + 2)[offset - 1] & 1:
        offset += 7
    return by_version(data[offset + 2 :]) if data[offset] & 0xEF == 3 and data[offset + 1] == 0xCC else b""


def _batman(data: bytes) -> Found:
    """B.A.T.M.A.N. advanced (a mesh network), compatibility version 15: a header before Ethernet."""
    packet_type, version = need(data, 2)[:2]
    size = {0x01: 14, 0x40: 10, 0x42: 18}.get(packet_type)
    if version == 15 and size is not None:
        return link(1, need(data, size)[size:])
    return "fragment" if version == 15 and packet_type == 0x41 else b""


def _atm(data: bytes) -> Found:
    return llc(data) or by_version(data)


def _sun_atm(data: bytes) -> Found:
    return llc(data[4:]) if need(data, 4)[0] & 0x0F == 2 else b""


def _packet_filter(data: bytes) -> Found:
    """OpenBSD's pflog: the header begins with its length, without the padding to a multiple of four."""
    return by_version(data[data[0] + 3 & ~3 :])


def _nflog(data: bytes) -> Found:
    """Linux netfilter log: tagged fields in the host's byte order; tag 9 is the packet."""
    for order in "<>":
        offset = 4
        while offset + 4 <= len(data):
            size, attribute = struct.unpack_from(order + "HH", data, offset)
            if size < 4:
                break
            if attribute & 0x7FFF == 9:
                return by_version(data[offset + 4 : offset + size])
            offset += size + 3 & ~3
    return "cut"


def _exported(data: bytes) -> Found:
    """Wireshark's exported PDUs: tagged fields before the data; tag 12 is the name of its dissector."""
    name, offset = b"", 0
    while (tag := int.from_bytes(need(data, offset + 4)[offset : offset + 2], "big")) != 0:
        size = int.from_bytes(data[offset + 2 : offset + 4], "big")
        if tag == 12:
            name = data[offset + 4 : offset + 4 + size].rstrip(b"\0")
        offset += 4 + size
    if name in (b"ip", b"ipv6", b"raw_ip"):
        return by_version(data[offset + 4 :])
    return None


def _ip_compressed(data: bytes) -> Found:
    """IPComp (RFC 3173) around an IP packet.

    The compression index is often a negotiated one that names no algorithm, so deflate (RFC 2394) is tried.
    """
    if need(data, 4)[0] not in (4, 41):
        return None
    try:
        return by_version(zlib.decompressobj(-zlib.MAX_WBITS).decompress(data[4:], _MAX_PACKET_BYTES))
    except zlib.error:
        return None


READERS: dict[tuple[str, int], Reader] = {
    ("link", 3): _amateur_radio,
    ("link", 6): _token_ring,
    ("link", 7): _arcnet(2),
    ("link", 8): fixed(16),  # SLIP of BSD
    ("link", 10): _fddi,
    ("link", 11): _atm,
    **{("link", number): _atm for number in (16, 18, 19)},  # older numbers of 106
    ("link", 100): _atm,  # RFC 1483; 11 is its number on BSD
    ("link", 105): wifi.frame,
    ("link", 106): _atm,  # classical IP over ATM of Linux
    ("link", 107): _frame_relay,
    ("link", 117): _packet_filter,
    ("link", 119): wifi.prism,
    ("link", 122): lambda data: llc(need(data, 16)[16:]),  # Fibre Channel, RFC 2625
    ("link", 123): _sun_atm,
    ("link", 127): wifi.radiotap,
    ("link", 129): _arcnet(4),
    **{("link", number): reader for number, reader in juniper.READERS.items()},
    ("link", 138): typed(16, 18),  # IEEE 1394 of Apple
    ("link", 143): wrapped.docsis,
    ("link", 149): wrapped.pktap_or_user,
    ("link", 163): wifi.avs,
    ("link", 192): wrapped.ppi,
    ("link", 197): wrapped.erf,
    ("link", 202): lambda data: _amateur_radio(need(data, 1)[1:]),  # after a KISS header
    ("link", 226): fixed(24),  # Solaris ipnet
    ("link", 239): _nflog,
    ("link", 240): typed(16, 18),  # Hilscher's analyser: four bytes, then Ethernet
    ("link", 241): typed(24, 26),
    ("link", 242): typed(40, 44),  # InfiniBand
    ("link", 252): _exported,
    ("link", 258): wrapped.pktap,
    ("link", 259): lambda data: link(1, need(data, 8)[8:]),  # passive optical network: its preamble
    ("link", 274): wrapped.mpacket,
    ("link", 279): lambda data: link(1, data[32:]) if need(data, 32)[0] == 0x50 else b"",  # cars' buses
    ("link", 281): typed(16, 18),  # tags that Ethernet switches put in: Broadcom's after the addresses,
    ("link", 282): typed(16, 18),  # before them,
    ("link", 284): typed(16, 18),  # Marvell's, four bytes
    ("link", 285): typed(20, 22),  # and eight bytes
    ("ethertype", 0x4305): _batman,
    ("ip", 108): _ip_compressed,
    ("capwap", 1): wifi.tunnelled,
}
"""Reader of each ("link", LINKTYPE_), ("ethertype", type), ("ip", protocol) and ("capwap", binding)."""
