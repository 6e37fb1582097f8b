"""Link types of Juniper's routers: a header with a magic number, the interface card's header, then frame or packet.

Protocol numbers are those of JUNOS. A card's header is recognised by its first byte, or guessed as Wireshark does.
"""

from __future__ import annotations

from collections.abc import Callable

from latpcap.reading.links.parts import Found, Reader, by_version, link, llc, mpls, need, nlpid, ppp

INCOMING, NO_LINK_LAYER, EXTENDED = 0x01, 0x02, 0x80
"""Flags of the header that all link types share."""
SERVICE_COOKIES = {0x54: 4, 0x40: 8, 0x47: 8}
"""Length of a services card's header (its "cookie"), by its first byte."""
PPP_PROTOCOLS = {0x21, 0x23, 0x281, 0x283, 0x3D, 0x57, 0x8021, 0x8023, 0x8281, 0xC021, 0xC023, 0xC223, 0x8057}


def headed(inner: Callable[[int, bytes], Found]) -> Reader:
    """Return a reader of the header that all link types share; `inner` gets its flags and the bytes after it."""

    def reader(data: bytes) -> Found:
        flags, offset = need(data, 4)[3], 4
        if data[:3] != b"MGC":  # JUNOS 6 and older write no such header
            return inner(flags, data)
        if flags & EXTENDED:
            offset = 6 + int.from_bytes(need(data, 6)[4:6], "big")
        if flags & NO_LINK_LAYER:
            return _payload(need(data, offset + 4)[offset], data[offset + 4 :])
        return inner(flags, need(data, offset)[offset:])

    return reader


def _payload(protocol: int, data: bytes) -> Found:
    if protocol in (2, 3, 6, 7):
        return by_version(data)
    return mpls(data) if protocol in (4, 5, 8) else b""


def ggsn(_: int, data: bytes) -> Found:
    """Gateway of a mobile network (GGSN): a protocol number, and a VLAN."""
    protocol = int.from_bytes(need(data, 4)[:2], "little")
    return by_version(data[8:]) if protocol == 0xA248 else _payload(protocol, data[4:])


def services(flags: int, data: bytes) -> Found:
    """Read the header of a services card: 16 bytes of header for incoming packets, 12 for outgoing ones."""
    return by_version(data[16 if flags & INCOMING else 12 :])


def tunnel(_: int, data: bytes) -> Found:
    """Secure tunnel (IPsec): Ethernet, IP and ESP headers and 16 further bytes, then the packet in plain text."""
    if need(data, 38)[12:14] != b"\x08\0" or data[23] != 50:
        return b""
    return by_version(data[14 + 4 * (data[14] & 0x0F) + 24 :])


def virtual_network(data: bytes) -> Found:
    """Virtual network: tagged fields up to tag 255, then Ethernet."""
    offset = 0
    while need(data, offset + 2)[offset] != 255:
        offset += 2 + data[offset + 1]
    return link(1, data[offset + 2 + data[offset + 1] :])


def atm1(_: int, data: bytes) -> Found:
    """First ATM card: a header of four bytes."""
    return b"" if need(data, 4)[0] == 0x80 else _cells(data[4:], first_card=True)


def atm2(flags: int, data: bytes) -> Found:
    """Second ATM card: a header of eight bytes, which shows whether Ethernet follows."""
    if need(data, 8)[7] & 0x70:  # an OAM cell
        return b""
    if not flags & INCOMING and data[3] & 0x3F and data[8:11] not in (b"\xaa\xaa\x03", b"\xfe\xfe\x03"):
        return link(1, data[8:])
    return _cells(data[8:], first_card=False)


def _cells(data: bytes, first_card: bool) -> Found:
    if need(data, 3)[:3] in (b"\xaa\xaa\x03", b"\xfe\xfe\x03"):
        return llc(data)
    if not first_card and int.from_bytes(data[:2], "big") in PPP_PROTOCOLS:
        return ppp(data)
    return nlpid(data[1:]) if data[0] == 3 else by_version(data)


def multilink_ppp(flags: int, data: bytes) -> Found:
    """Multilink PPP; the header depends on the kind of card."""
    cookie = need(data, 8)[0]
    payload = data[SERVICE_COOKIES.get(cookie, 0) :]
    if cookie == 0x54:
        return ppp(payload)
    if cookie in SERVICE_COOKIES:
        if data[5] & 0xF0 == 0 and flags & INCOMING and data[4] & 3 != 3:
            return ppp(payload)
        return _service(data[5] >> 4, payload)
    if data[:2] == b"\xff\x03":
        return ppp(data)
    for offset in (2, 0):
        if int.from_bytes(data[offset : offset + 2], "big") in PPP_PROTOCOLS:
            return ppp(data[offset:])
    return b""


def multilink_frame_relay(_: int, data: bytes) -> Found:
    """Multilink Frame Relay; the header depends on the kind of card."""
    cookie = need(data, 8)[0]
    payload = data[SERVICE_COOKIES.get(cookie, 0) :]
    if cookie == 0x54:
        payload = payload[2:] if payload[:2] in (b"\0\x03", b"\x03\0") else payload
        return nlpid(payload[1:] if payload[:1] == b"\x03" else payload)
    if cookie in SERVICE_COOKIES:
        return b"" if data[5] & 0xF0 == 0 and data[4] & 3 == 3 else _service(data[5] >> 4, payload)
    if data[2:4] in (b"\0\x03", b"\x03\0"):
        return nlpid(data[4:])
    return nlpid(data[3:]) if data[2] == 3 else b""


def _service(protocol: int, data: bytes) -> Found:
    if protocol in (0, 1):
        return by_version(data)
    return mpls(data) if protocol == 2 else nlpid(data)


READERS: dict[int, Reader] = {
    130: headed(multilink_ppp),
    131: headed(multilink_frame_relay),
    133: headed(ggsn),
    135: headed(atm2),
    136: headed(services),
    137: headed(atm1),
    167: headed(lambda _, data: link(1, data)),  # PPPoE
    178: headed(lambda _, data: link(1, data)),
    179: headed(lambda _, data: ppp(data[2:])),
    180: headed(lambda _, data: link(107, data)),
    181: headed(lambda _, data: link(104, data)),
    183: headed(lambda _, data: by_version(data[18:])),  # voice
    184: virtual_network,
    200: headed(tunnel),
}
"""Reader of each LINKTYPE_ number."""
