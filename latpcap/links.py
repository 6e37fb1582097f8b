"""What is in a frame of a rare link type?

A frame in, the IP packet in it out. The core reads the common link types and tunnels itself and asks here for the
others, one frame at a time: `read(layer, number, data)`. Add a type by adding its reader to `READERS`:

    latpcap.links.READERS["link", 147] = lambda frame: frame[4:]  # LINKTYPE_USER0: four bytes, then IP
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

Found = bytes | str | None
"""The IP packet, b"" where the frame has none, "encrypted" or "cut" for what cannot be read, None for what is not
understood: the frames without a packet are counted in `Capture.issues`, those of b"" are not."""

_LONGEST_PACKET = 65_575


def read(layer: str, number: int, data: bytes) -> Found:
    """Which IP packet is in these bytes?

    `layer` says what kind of number `number` is: "link" (LINKTYPE_), "ethertype", "ip" (IP protocol). Gives an IPv4 or
    IPv6 packet from its first byte on, or one of the other values of `Found`; never raises for what the bytes hold.
    """
    reader = READERS.get((layer, number))
    if reader is None:
        return None
    try:
        return reader(data)
    except (IndexError, ValueError, struct.error):
        return "cut"


def _by_version(data: bytes) -> bytes:
    return data if data[:1] and data[0] >> 4 in (4, 6) else b""


def _ethertype(kind: int, data: bytes) -> bytes:
    while kind in (0x8100, 0x88A8, 0x9100) and len(data) >= 4:
        kind, data = int.from_bytes(data[2:4], "big"), data[4:]
    if kind <= 1500:
        return _llc(data)
    return data if kind in (0x0800, 0x86DD) else b""


def _llc(data: bytes) -> bytes:
    """IEEE 802.2: SNAP with an ethertype, IP's own SAP, or ISO's network layer identifier."""
    if data[:3] == b"\xaa\xaa\x03" and len(data) >= 8:
        return _ethertype(int.from_bytes(data[6:8], "big"), data[8:]) if data[6] >= 6 else b""
    if data[:3] == b"\x06\x06\x03":
        return data[3:]
    if data[:4] in (b"\xfe\xfe\x03\xcc", b"\xfe\xfe\x03\x8e"):
        return data[4:]
    return b""


def _typed(at: int, header: int) -> Callable[[bytes], bytes]:
    """A header of fixed length with an ethertype in it."""
    return lambda data: _ethertype(int.from_bytes(_need(data, header)[at : at + 2], "big"), data[header:])


def _fixed(header: int) -> Callable[[bytes], bytes]:
    """A header of fixed length, then IP."""
    return lambda data: _by_version(_need(data, header)[header:])


def _need(data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise ValueError("cut")
    return data


def _wifi(data: bytes) -> Found:
    """IEEE 802.11: data frames, by dpkt; what else a network says has no IP in it."""
    import dpkt

    if _need(data, 2)[0] & 0x0C != 0x08 or data[0] & 0x40:
        return b""
    try:
        frame = dpkt.ieee80211.IEEE80211(data)
    except (dpkt.UnpackError, dpkt.NeedData, KeyError):
        return "cut"
    if frame.wep:
        return "encrypted"
    payload = frame.data
    if data[0] & 0x80 and frame.order:
        payload = payload[4:]  # HT control
    return _llc(payload) if isinstance(payload, bytes) else "cut"


def _radiotap(data: bytes) -> Found:
    return _wifi(data[_need(data, 8)[2] | data[3] << 8 :])


def _avs(data: bytes) -> Found:
    return _wifi(data[int.from_bytes(_need(data, 8)[4:8], "big") :])


def _prism(data: bytes) -> Found:
    if data[:3] == b"\x80\x21\x10":
        return _avs(data)
    return _wifi(data[int.from_bytes(_need(data, 8)[4:8], "little") :])


def _ppi(data: bytes) -> Found:
    """Per-packet information: the link type of what follows stands in its header."""
    _, _, size, link = struct.unpack_from("<BBHI", data)
    if link == 192:
        return None
    if link == 1:
        return _typed(12, 14)(data[size:])
    return read("link", link, data[size:])


def _token_ring(data: bytes) -> Found:
    """IEEE 802.5: the source address says whether a route follows it."""
    head = _need(data, 14)
    if head[1] & 0xC0 != 0x40:
        return b""
    route = data[14] & 0x1F if head[8] & 0x80 else 0
    return _llc(data[14 + route :])


def _fddi(data: bytes) -> Found:
    return _llc(data[13:]) if _need(data, 13)[0] & 0xF0 == 0x50 else b""


def _arcnet(type_at: int) -> Callable[[bytes], Found]:
    """ARCnet: RFC 1201 has a split flag and a number before the packet, RFC 1051 has not."""

    def reader(data: bytes) -> Found:
        kind = data[type_at]
        if kind == 0xF0:
            return data[type_at + 1 :]
        if kind not in (0xC4, 0xD4):
            return b""
        flag = data[type_at + 1]
        if flag == 0xFF:  # a frame of an awkward length: four bytes more
            return data[type_at + 8 :]
        return "cut" if flag else data[type_at + 4 :]

    return reader


def _frame_relay(data: bytes) -> Found:
    """Q.922 address, then a network layer identifier (RFC 2427) or Cisco's ethertype."""
    at = 1
    while not data[at - 1] & 1:
        at += 1
    if data[at] == 3:
        pad = 1 if data[at + 1] == 0 else 0
        kind, rest = data[at + 1 + pad], data[at + 2 + pad :]
        if kind in (0xCC, 0x8E):
            return rest
        return _ethertype(int.from_bytes(rest[3:5], "big"), rest[5:]) if kind == 0x80 else b""
    return _ethertype(int.from_bytes(data[at : at + 2], "big"), data[at + 2 :])


def _atm(data: bytes) -> Found:
    return _llc(data) or _by_version(data)


def _sun_atm(data: bytes) -> Found:
    return _llc(data[4:]) if _need(data, 4)[0] & 0x0F == 2 else b""


def _packet_filter(data: bytes) -> Found:
    """OpenBSD's pflog: the header tells its length, without what pads it to a multiple of four."""
    return _by_version(data[data[0] + 3 & ~3 :])


def _nflog(data: bytes) -> Found:
    """Linux netfilter log: tagged fields in the host's byte order, one of them is the packet."""
    for order in "<>":
        at = 4
        while at + 4 <= len(data):
            size, kind = struct.unpack_from(order + "HH", data, at)
            if size < 4:
                break
            if kind & 0x7FFF == 9:
                return _by_version(data[at + 4 : at + size])
            at += size + 3 & ~3
    return "cut"


def _exported(data: bytes) -> Found:
    """Wireshark's exported PDUs: tags, one of which names what follows."""
    name, at = b"", 0
    while (tag := int.from_bytes(_need(data, at + 4)[at : at + 2], "big")) != 0:
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        if tag == 12:
            name = data[at + 4 : at + 4 + size].rstrip(b"\0")
        at += 4 + size
    if name in (b"ip", b"ipv6", b"raw_ip"):
        return _by_version(data[at + 4 :])
    return None


def _ip_compressed(data: bytes) -> Found:
    """IPComp (RFC 3173) around a packet; its index is often a negotiated one, so deflate (RFC 2394) is tried."""
    if _need(data, 4)[0] not in (4, 41):
        return None
    try:
        return _by_version(zlib.decompressobj(-zlib.MAX_WBITS).decompress(data[4:], _LONGEST_PACKET))
    except zlib.error:
        return None


READERS: dict[tuple[str, int], Callable[[bytes], Found]] = {
    ("link", 6): _token_ring,
    ("link", 7): _arcnet(2),
    ("link", 8): _fixed(16),  # SLIP of BSD
    ("link", 10): _fddi,
    ("link", 100): _atm,  # RFC 1483
    ("link", 105): _wifi,
    ("link", 106): _atm,  # classical IP over ATM of Linux
    ("link", 107): _frame_relay,
    ("link", 117): _packet_filter,
    ("link", 119): _prism,
    ("link", 122): lambda data: _llc(_need(data, 16)[16:]),  # Fibre Channel, RFC 2625
    ("link", 123): _sun_atm,
    ("link", 127): _radiotap,
    ("link", 129): _arcnet(4),
    ("link", 138): _typed(16, 18),  # IEEE 1394 of Apple
    ("link", 163): _avs,
    ("link", 192): _ppi,
    ("link", 226): _fixed(24),  # Solaris ipnet
    ("link", 239): _nflog,
    ("link", 240): _typed(16, 18),  # Hilscher's analyser: four bytes, then Ethernet
    ("link", 241): _typed(24, 26),
    ("link", 242): _typed(40, 44),  # InfiniBand
    ("link", 252): _exported,
    ("link", 281): _typed(16, 18),  # tags that Ethernet switches put in: Broadcom's behind the addresses,
    ("link", 282): _typed(16, 18),  # before them,
    ("link", 284): _typed(16, 18),  # Marvell's, four bytes
    ("link", 285): _typed(20, 22),  # or eight
    ("ip", 108): _ip_compressed,
}
"""Who reads what: ("link", LINKTYPE_), ("ethertype", type) or ("ip", protocol) to a function of the layer's bytes."""
