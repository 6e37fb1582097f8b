"""One IP packet in the headers of each rare link type, for tests of latpcap and of tshark beside it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import dpkt

SNAP = b"\xaa\xaa\x03\0\0\0\x08\0"
MACS = b"\x02\0\0\0\0\1\x02\0\0\0\0\2"
ETHERNET = MACS + b"\x08\0"
TAGGED = MACS + b"\x81\0\0\5\x08\0"
LABEL = b"\0\x01\x01\xff"
WIFI = b"\x08\x01\0\0" + bytes(18) + b"\0\0" + SNAP
QOS = b"\x88\x02\0\0" + bytes(18) + b"\0\0" + b"\0\0" + SNAP
MESH = b"\x88\x03\0\0" + bytes(18) + b"\0\0" + bytes(6) + b"\0\x01" + b"\0\x1f" + b"\1\0\0\0" + SNAP
MESH_EXTENDED = b"\x88\x03\0\0" + bytes(18) + b"\0\0" + bytes(6) + b"\0\x01" + b"\2\x1f" + b"\1\0\0\0" + MACS + SNAP


def nflog(packet: bytes) -> bytes:
    size = len(packet) + 4
    return struct.pack("<BBH", 2, 0, 0) + struct.pack("<HH", 5, 10) + b"a\0\0\0" + struct.pack("<HH", size, 9) + packet


def deflated(packet: bytes) -> bytes:
    inner = zlib.compressobj(wbits=-15)
    return outer(108, b"\x04\0\0\x02" + inner.compress(packet) + inner.flush())


def amsdu(*packets: bytes, control: bytes = b"\x80\0") -> bytes:
    """The packets as one A-MSDU; the last is not filled up."""
    out = b"\x88\x02\0\0" + bytes(18) + b"\0\0" + control
    for n, packet in enumerate(packets):
        part = MACS + struct.pack(">H", len(SNAP + packet)) + SNAP + packet
        out += part + bytes(-len(part) % 4 if n + 1 < len(packets) else 0)
    return out


def radiotap(flags: int, rest: bytes) -> bytes:
    """With the time, two words of what is there, and flags."""
    head = struct.pack("<II", 1 << 31 | 3, 0) + b"\0" * 8 + bytes([flags])
    head = struct.pack("<BBH", 0, 0, 4 + len(head) + 4) + struct.pack("<II", 1 << 31 | 3, 0) + b"\0" * 4
    head += b"\0" * 8 + bytes([flags, 0, 0, 0])
    return head[:2] + struct.pack("<H", len(head)) + head[4:] + rest


def pktap(link: int, rest: bytes) -> bytes:
    head = struct.pack("<III24sIIII", 108, 1, link, b"en0", 0, 2, 14, 0)
    return head + bytes(108 - len(head)) + rest


def juniper(flags: int, rest: bytes, extended: bool = False) -> bytes:
    more = b"\x01\x02\0\5\x02\x02ge" if extended else b""
    return (
        b"MGC" + bytes([flags | (0x80 if extended else 0)]) + (struct.pack(">H", 8) if extended else b"") + more + rest
    )


def erf(kind: int, prefix: bytes, packet: bytes, extensions: int = 0, wire: int | None = None) -> bytes:
    more = b"".join(bytes([0x83 if n + 1 < extensions else 0x03]) + bytes(7) for n in range(extensions))
    kind |= 0x80 if extensions else 0
    head = struct.pack("<IIBB", 0, 1_700_000_000, kind, 4)
    size = 16 + len(more + prefix + packet)
    return head + struct.pack(">HHH", size, 0, len(packet) if wire is None else wire) + more + prefix + packet


def mpacket(start: bytes, frame: bytes) -> bytes:
    return b"\x55" * 7 + start + frame + zlib.crc32(frame).to_bytes(4, "little")


def docsis(frame: bytes, control: int = 0, extension: bytes = b"") -> bytes:
    head = bytes([control | bool(extension), len(extension)]) + struct.pack(">H", len(extension) + len(frame))
    return checked(head + extension) + frame


def concatenated(*frames: bytes) -> bytes:
    whole = b"".join(frames)
    return checked(bytes([0xF8, len(frames)]) + struct.pack(">H", len(whole))) + whole


def checked(head: bytes) -> bytes:
    """With the header check sequence (CRC-16 of X.25): tshark goes no further where it is wrong."""
    crc = 0xFFFF
    for byte in head:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x8408 if crc & 1 else 0)
    return head + struct.pack("<H", crc ^ 0xFFFF)


def outer(protocol: int, payload: bytes) -> bytes:
    return bytes(dpkt.ip.IP(src=b"\1\1\1\1", dst=b"\2\2\2\2", p=protocol, len=20 + len(payload), data=payload))


def udp(port: int, payload: bytes) -> bytes:
    return outer(17, struct.pack(">HHHH", port, port, 8 + len(payload), 0) + payload)


RADIO = b"\0\x10\3\0\0\0\0\0"
PPP_SESSION = b"\0\2\0\1\0\1"
LSQ = b"\x47\0\0\0\0"
WRAPPINGS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "802.11": (105, lambda p: WIFI + p),
    "802.11, QoS": (105, lambda p: QOS + p),
    "802.11, four addresses": (105, lambda p: b"\x08\x03" + bytes(22) + bytes(6) + SNAP + p),
    "802.11, HT control": (105, lambda p: b"\x88\x82" + bytes(22) + b"\0\0" + bytes(4) + SNAP + p),
    "802.11, mesh": (105, lambda p: MESH + p),
    "802.11, mesh with addresses": (105, lambda p: MESH_EXTENDED + p),
    "802.11, VLAN": (105, lambda p: WIFI[:-2] + b"\x81\0\0\1\x08\0" + p),
    "802.11, MPLS": (105, lambda p: WIFI[:-2] + b"\x88\x47" + LABEL + p),
    "802.11, A-MSDU of one": (105, lambda p: amsdu(p)),
    "radiotap": (127, lambda p: b"\0\0\x08\0\0\0\0\0" + WIFI + p),
    "radiotap, padded": (127, lambda p: radiotap(0x20, QOS[:26] + b"\0\0" + SNAP + p)),
    "radiotap, checksum": (127, lambda p: radiotap(0x10, QOS + p + bytes(4))),
    "prism": (119, lambda p: struct.pack("<II", 0x44, 144) + bytes(136) + WIFI + p),
    "avs": (163, lambda p: struct.pack(">II", 0x80211001, 64) + bytes(56) + WIFI + p),
    "avs in prism": (119, lambda p: struct.pack(">II", 0x80211001, 64) + bytes(56) + WIFI + p),
    "ppi": (192, lambda p: struct.pack("<BBHI", 0, 0, 8, 105) + WIFI + p),
    "ppi, ethernet": (192, lambda p: struct.pack("<BBHI", 0, 0, 8, 1) + ETHERNET + p),
    "ppi, PPP": (192, lambda p: struct.pack("<BBHI", 0, 0, 8, 9) + b"\xff\x03\0\x21" + p),
    "token ring": (6, lambda p: b"\x10\x40" + MACS + SNAP + p),
    "token ring, routed": (6, lambda p: b"\x10\x40" + MACS[:6] + b"\x82" + MACS[7:] + b"\x06\0\0\0\0\0" + SNAP + p),
    "amateur radio": (3, lambda p: b"\x82" * 13 + b"\x61\3\xcc" + p),
    "amateur radio, relayed": (202, lambda p: b"\0" + b"\x82" * 20 + b"\x61\3\xcc" + p),
    "arcnet": (7, lambda p: b"\1\2\xd4\0\0\1" + p),
    "arcnet, linux": (129, lambda p: b"\1\2\0\0\xd4\0\0\1" + p),
    "arcnet, linux, RFC 1051": (129, lambda p: b"\1\2\0\0\xf0" + p),
    "fddi": (10, lambda p: b"\x50" + MACS + SNAP + p),
    "atm": (100, lambda p: SNAP + p),
    "atm of BSD": (11, lambda p: SNAP + p),
    "atm of libpcap's old number": (19, lambda p: p),
    "atm, routed": (106, lambda p: p),
    "atm of sun": (123, lambda p: b"\x02\0\0\1" + SNAP + p),
    "frame relay": (107, lambda p: b"\x18\x41\x03\xcc" + p),
    "frame relay, SNAP": (107, lambda p: b"\x18\x41\x03\0\x80\0\0\0\x08\0" + p),
    "frame relay of cisco": (107, lambda p: b"\x18\x41\x08\0" + p),
    "HDLC of NetBSD": (112, lambda p: b"\x0f\0\x08\0" + p),
    "pflog": (117, lambda p: b"\x3d\x02" + bytes(62) + p),
    "fibre channel": (122, lambda p: bytes(16) + SNAP + p),
    "TZSP": (128, lambda p: b"\1\0\0\1\1" + ETHERNET + p),
    "juniper, PPP of several links": (130, lambda p: juniper(1, b"\x54\0\0\0\0\x21" + p)),
    "juniper, the same, IP": (130, lambda p: juniper(0, LSQ + b"\0\0\0" + p)),
    "juniper, the same, MPLS": (130, lambda p: juniper(1, LSQ + b"\x20\0\0" + LABEL + p)),
    "juniper, the same, incoming": (130, lambda p: juniper(1, LSQ + b"\0\0\0\0\x21" + p)),
    "juniper, the same, one link": (130, lambda p: juniper(1, b"\xff\x03\0\x21" + p)),
    "juniper, the same, old card": (130, lambda p: juniper(1, b"\0\1\0\x21" + p)),
    "juniper, the same, no cookie": (130, lambda p: juniper(1, b"\0\x21" + p)),
    "juniper, frame relay of several links": (131, lambda p: juniper(1, LSQ + b"\0\0\0" + p)),
    "juniper, GGSN": (133, lambda p: juniper(1, b"\2\0\0\0" + p)),
    "juniper, ATM2": (135, lambda p: juniper(1, bytes(8) + SNAP + p)),
    "juniper, ATM2, ethernet": (135, lambda p: juniper(0, b"\0\0\0\x05\0\0\0\0" + ETHERNET + p)),
    "juniper, ATM2, PPP": (135, lambda p: juniper(1, bytes(8) + b"\0\x21" + p)),
    "juniper, ATM2, IP": (135, lambda p: juniper(1, bytes(8) + p)),
    "juniper, services": (136, lambda p: juniper(1, bytes(16) + p)),
    "juniper, services, outgoing": (136, lambda p: juniper(0, bytes(12) + p)),
    "juniper, ATM1": (137, lambda p: juniper(1, bytes(4) + SNAP + p)),
    "juniper, ATM1, IP": (137, lambda p: juniper(1, bytes(4) + p)),
    "juniper, PPPoE": (
        167,
        lambda p: juniper(1, MACS + b"\x88\x64\x11\0\0\1" + struct.pack(">H", len(p) + 2) + b"\0\x21" + p),
    ),
    "juniper, ethernet": (178, lambda p: juniper(1, TAGGED + p)),
    "juniper, extended": (178, lambda p: juniper(0, ETHERNET + p, extended=True)),
    "juniper, no link layer": (178, lambda p: juniper(3, b"\2\0\0\0" + p)),
    "juniper, no link layer, labels": (178, lambda p: juniper(3, b"\5\0\0\0" + LABEL + p)),
    "juniper, PPP": (179, lambda p: juniper(1, b"\xff\x03\0\x21" + p)),
    "juniper, frame relay": (180, lambda p: juniper(1, b"\x18\x41\x03\xcc" + p)),
    "juniper, HDLC": (181, lambda p: juniper(1, b"\x0f\0\x08\0" + p)),
    "juniper, HDLC of JUNOS 6": (181, lambda p: b"\x0f\0\x08\0" + p),
    "juniper, voice": (183, lambda p: juniper(1, bytes(18) + p)),
    "juniper, virtual network": (184, lambda p: b"\1\4\1\2\3\4\2\4\0\0\0\0\xff\0" + ETHERNET + p),
    "juniper, tunnel": (200, lambda p: juniper(1, ETHERNET + b"\x45" + bytes(8) + b"\x32" + bytes(10) + bytes(24) + p)),
    "firewire": (138, lambda p: bytes(16) + b"\x08\0" + p),
    "cable": (143, lambda p: docsis(ETHERNET + p)),
    "cable, extended": (143, lambda p: docsis(ETHERNET + p, extension=b"\x61\7\0")),
    "cable, isolated": (143, lambda p: docsis(TAGGED + p, 0x80)),
    "erf, ethernet": (197, lambda p: erf(2, b"\0\0", ETHERNET + p + bytes(4))),
    "erf, ethernet, extended": (197, lambda p: erf(2, b"\0\0", TAGGED + p + bytes(4), 2)),
    "erf, colour": (197, lambda p: erf(16, b"\0\0", ETHERNET + p + bytes(4))),
    "erf, PPP": (197, lambda p: erf(1, b"", b"\xff\x03\0\x21" + p)),
    "erf, HDLC": (197, lambda p: erf(1, b"", b"\x0f\0\x08\0" + p)),
    "erf, HDLC of several channels": (197, lambda p: erf(5, bytes(4), b"\x0f\0\x08\0" + p)),
    "erf, AAL5": (197, lambda p: erf(4, b"", b"\0\x10\x02\0" + SNAP + p)),
    "erf, AAL5 of several channels": (197, lambda p: erf(9, bytes(4), b"\0\x10\x02\0" + SNAP + p)),
    "erf, IP": (197, lambda p: erf(22 if p[0] >> 4 == 4 else 23, b"", p)),
    "ipnet": (226, lambda p: b"\1\2\0\0" + struct.pack(">I", len(p)) + bytes(16) + p),
    "nflog": (239, nflog),
    "infiniband": (242, lambda p: bytes(40) + b"\x08\0\0\0" + p),
    "exported": (252, lambda p: b"\0\x0c\0\x04ip\0\0" + bytes(4) + p),
    "PKTAP": (258, lambda p: pktap(1, TAGGED + p)),
    "PKTAP, raw": (258, lambda p: pktap(12, p)),
    "PKTAP, loopback": (258, lambda p: pktap(0, b"\2\0\0\0" + p)),
    "PKTAP of older macOS": (149, lambda p: pktap(1, ETHERNET + p)),
    "passive optical network": (259, lambda p: b"\x55\x55\xd5\x55\x55\0\1\0" + ETHERNET + p),
    "mPacket": (274, lambda p: mpacket(b"\xd5", ETHERNET + p)),
    "mPacket, interruptible": (274, lambda p: mpacket(b"\xe6", ETHERNET + p)),
    "compressed": (228, deflated),
    "ethernet in IP": (101, lambda p: outer(143, ETHERNET + p)),
    "CAPWAP": (101, lambda p: udp(5247, b"\0\x10\2\0\0\0\0\0" + ETHERNET + p)),
    "CAPWAP, radio": (101, lambda p: udp(5247, RADIO + b"\1\x08" + WIFI[2:] + p)),
    "CAPWAP, radio, QoS": (101, lambda p: udp(5247, RADIO + b"\2\x88" + QOS[2:] + p)),
    "CAPWAP, what it heard": (101, lambda p: udp(5247, b"\0\x20\3\x20" + bytes(12) + b"\1\x08" + WIFI[2:] + p)),
    "PPP of several links": (101, lambda p: udp(1701, PPP_SESSION + b"\xff\3\0\x3d\xc0\0\0\1\0\x21" + p)),
    "PPP of several links, short": (101, lambda p: udp(1701, PPP_SESSION + b"\x3d\xc0\0\0\1\x21" + p)),
    "bus of a car": (279, lambda p: b"\x50" + bytes(31) + ETHERNET + p + bytes(4)),
    "enc of OpenBSD": (13, lambda p: b"\2\0\0\0" + bytes(8) + p),
    "mesh": (1, lambda p: MACS + b"\x43\5\x40\x0f\x32\1" + bytes(6) + ETHERNET + p),
    "mesh, four addresses": (1, lambda p: MACS + b"\x43\5\x42\x0f\x32\1" + bytes(14) + ETHERNET + p),
    "mesh, to all": (1, lambda p: MACS + b"\x43\5\1\x0f\x32\0" + bytes(10) + ETHERNET + p),
    "vlan in llc": (10, lambda p: b"\x50" + MACS + b"\xaa\xaa\x03\0\0\0\x81\0\0\1\x08\0" + p),
}
"""By name: the link type, and what to do to an IPv4 packet. tshark 4.0 reads them all."""

ALONE: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "netanalyzer": (240, lambda p: bytes(4) + ETHERNET + p),
    "switch tag": (281, lambda p: MACS + b"\0\0\0\1\x08\0" + p),
    "switch tag, eight": (285, lambda p: MACS + b"\xda\xda\0\0\0\0\0\1\x08\0" + p),
    "slip": (8, lambda p: b"\0\x40" + bytes(14) + p),
    "CAPWAP, radio, as it was": (101, lambda p: udp(5247, RADIO + WIFI + p)),
    "L2TPv3": (101, lambda p: outer(115, b"\0\0\0\7" + ETHERNET + p)),
    "L2TPv3, cookie": (101, lambda p: outer(115, b"\0\0\0\7" + b"\x99" * 8 + b"\x40\0\0\1" + TAGGED + p)),
    "L2TPv3, HDLC": (101, lambda p: udp(1701, b"\0\3\0\0\0\0\0\7\x0f\0\x08\0" + p)),
    "L2TPv3, PPP": (101, lambda p: udp(1701, b"\0\3\0\0\0\0\0\7\xff\3\0\x21" + p)),
    "MPLS": (219, lambda p: LABEL + p),
}
"""Those that tshark 4.0 does not know, or wants to be told more of than we do."""
