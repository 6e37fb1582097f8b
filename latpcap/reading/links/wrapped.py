"""Headers of capture hardware and operating systems before a frame; they show its link type."""

from __future__ import annotations

import struct
import zlib

from latpcap.reading.links.parts import Found, One, by_version, link, need


def ppi(data: bytes) -> Found:
    """Read a PPI header (per-packet information)."""
    _, _, size, inner = struct.unpack_from("<BBHI", data)
    return None if inner == 192 else link(inner, data[size:])


def pktap(data: bytes) -> Found:
    """Read Apple's PKTAP, which names interface and process; a record may have no packet."""
    size, record_type, inner = struct.unpack_from("<III", data)
    if size < 108:
        return "cut"
    return link(inner, need(data, size)[size:]) if record_type == 1 else b""


def pktap_or_user(data: bytes) -> Found:
    """Read LINKTYPE_USER2 as PKTAP, as older macOS wrote it, if the header's size, type and interface name fit."""
    if len(data) < 108:
        return None
    size, record_type = struct.unpack_from("<II", data)
    name = data[12:36].rstrip(b"\0")
    return (
        pktap(data) if size in range(108, 513) and record_type in (0, 1) and name.isalnum() and name.isascii() else None
    )


def erf(data: bytes) -> Found:
    """Read Endace's ERF: a header, extensions of eight bytes, and a frame, which some types put a prefix before."""
    type_field, offset = need(data, 16)[8], 16
    record_type = type_field & 0x7F
    while type_field & 0x80:
        type_field, offset = need(data, offset + 8)[offset], offset + 8
    packet, wire = data[offset:], int.from_bytes(data[14:16], "big")
    if record_type in (2, 11, 16, 20):  # Ethernet
        return link(1, packet[2:][:wire])
    if record_type in (1, 10, 15, 19):  # HDLC: PPP or Cisco's
        return link(50, packet[:wire])
    if record_type in (5, 17):  # multichannel HDLC
        return link(50, packet[4:][:wire])
    if record_type in (4, 9):  # multichannel AAL5, and AAL5
        return link(100, packet[4 if record_type == 4 else 8 :])
    if record_type in (22, 23):
        return by_version(packet[:wire])
    return b"" if record_type in (27, 48) else None  # metadata of the card, padding


def mpacket(data: bytes) -> Found:
    """Read an IEEE 802.3br mPacket: preamble, frame and checksum; the preamble's end marks preempted frames."""
    start, frame = need(data, 12)[7], data[8:-4]
    if start == 0xD5:
        return link(1, frame)
    if start in (0xE6, 0x4C, 0x7F, 0xB3):  # the start of a frame that may be preempted
        return link(1, frame) if zlib.crc32(frame).to_bytes(4, "little") == data[-4:] else "fragment"
    return "fragment" if data[6] in (0x61, 0x52, 0x9E, 0x2A) else b""


def docsis(data: bytes) -> Found:
    """Read the MAC header of a cable network (DOCSIS); a concatenated frame contains others."""
    control, extension_size = need(data, 6)[:2]
    frame_type, parameter, extended = control >> 6, control >> 1 & 0x1F, bool(control & 1)
    offset = 6 + (extension_size if extended else 0)
    if frame_type == 3 and parameter == 0x1C:
        return _concatenated(data[6:])
    if frame_type == 3 and parameter == 3:
        return "fragment"
    if frame_type not in (0, 2):
        return b""
    if extended and _is_encrypted(data[4 : 4 + extension_size]):
        return "encrypted"
    return link(1, need(data, offset)[offset:])


def _is_encrypted(elements: bytes) -> bool:
    """Return whether an extended header element enables baseline privacy."""
    offset = 0
    while offset < len(elements):
        element, size = elements[offset] >> 4, elements[offset] & 0x0F
        if element in (3, 4, 7) and size >= 2 and elements[offset + 2 : offset + 3] >= b"\x80":
            return True
        offset += 1 + size
    return False


def _concatenated(data: bytes) -> list[One]:
    frames: list[One] = []
    offset = 0
    while offset + 6 <= len(data):
        control, _, size = struct.unpack_from(">BBH", data, offset)
        parameter = control >> 1 & 0x1F if control >> 6 == 3 else 0
        if parameter == 0x1C:
            break  # concatenated frames are not nested
        if parameter in (2, 4):  # a request has a service id in place of the length
            size = parameter // 4
        frames.append(link(143, data[offset : offset + 6 + size]))
        offset += 6 + size
    return frames
