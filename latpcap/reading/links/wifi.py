"""IEEE 802.11 frames, and the capture headers of radios before them. Only data frames contain packets."""

from __future__ import annotations

from latpcap.reading.links.parts import Found, One, llc, need

TO_AND_FROM, FROM = 3, 2
"""DS bits of a frame between access points, which has a fourth address, and from an access point to a station."""


def frame(data: bytes, padded: bool = False) -> Found:
    """Read one frame. If `padded`, the radio padded its header to a multiple of four bytes."""
    frame_type, flags = need(data, 2)[:2]
    if frame_type & 0x0F != 0x08 or frame_type & 0x40:  # not a data frame, or without data
        return b""
    direction, control = flags & 3, 0
    size = 30 if direction == TO_AND_FROM else 24
    need(data, size)
    if frame_type & 0x80:
        control = int.from_bytes(need(data, size + 2)[size : size + 2], "little")
        size += 6 if flags & 0x80 else 2  # QoS control, and HT control if the order bit is set
    if flags & 0x40:
        return "encrypted"
    if flags & 0x04 or data[22] & 0x0F:
        return "fragment"
    body = data[size + 3 & ~3 if padded else size :]
    if control & 0x80:
        return _aggregate(body)
    if control & 0x100 and direction in (TO_AND_FROM, FROM):
        body = _mesh(body)
    return llc(body)


def _aggregate(body: bytes) -> list[One]:
    """Read an A-MSDU: subframes of two addresses, a length and a packet, each padded to a multiple of four bytes."""
    subframes: list[One] = []
    offset = 0
    while offset + 14 < len(body):
        end = offset + 14 + int.from_bytes(body[offset + 12 : offset + 14], "big")
        subframes.append(llc(body[offset + 14 : end]))
        offset = end + 3 & ~3
    return subframes


def _mesh(body: bytes) -> bytes:
    """Remove a mesh control header, if there is one.

    Other networks use its bit differently, so it is only removed if its first byte is a valid address extension (0-2).
    """
    extended = need(body, 6)[0]
    return body[6 + 6 * extended :] if extended < 3 else body


def tunnelled(data: bytes) -> Found:
    """Read a frame in CAPWAP. Some access points swap its first two bytes, which the first byte shows."""
    return frame(data if need(data, 2)[0] & 0x0F == 0x08 else data[1::-1] + data[2:])


def radiotap(data: bytes) -> Found:
    """Read a radiotap header, whose flags show whether the frame's header is padded."""
    size = int.from_bytes(need(data, 8)[2:4], "little")
    offset, first = 8, int.from_bytes(data[4:8], "little")
    present = first
    while present & 1 << 31:
        present = int.from_bytes(need(data, offset + 4)[offset : offset + 4], "little")
        offset += 4
    if first & 1:  # the timestamp, aligned to eight bytes
        offset = (offset + 7 & ~7) + 8
    padded = bool(first & 2 and need(data, offset + 1)[offset] & 0x20)
    return frame(data[size:], padded)


def avs(data: bytes) -> Found:
    """Read an AVS header, which has its length in its second word."""
    return frame(data[int.from_bytes(need(data, 8)[4:8], "big") :])


def prism(data: bytes) -> Found:
    """Read a Prism header, or an AVS header under the same link type."""
    if data[:3] == b"\x80\x21\x10":
        return avs(data)
    return frame(data[int.from_bytes(need(data, 8)[4:8], "little") :])
