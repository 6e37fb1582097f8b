"""What readers of rare link types have in common: LLC, ethertypes, headers of fixed length.

A reader takes a frame's bytes and gives what is in them (`Found`); it reads its own header only, and leaves what
follows to the core where that knows it, so that VLAN tags, labels and tunnels are read in one place.
"""

from __future__ import annotations

from collections.abc import Callable

Layer = tuple[str, int, bytes]
"""A layer that is still to be read: ("link", LINKTYPE_ number, its bytes) or ("ethertype", type, its bytes)."""

One = bytes | str | Layer | None
"""The IP packet, or a layer that holds it; b"" where the frame has none; "encrypted", "fragment" or "cut" for what
cannot be read; None for what is not understood. Frames without a packet are counted in `Capture.issues`, those of
b"" are not."""

Found = One | list[One]
"""What is in a frame; a list where it may hold several packets."""

Reader = Callable[[bytes], Found]


def need(data: bytes, size: int) -> bytes:
    """The bytes, if there are so many."""
    if len(data) < size:
        raise ValueError("cut")
    return data


def by_version(data: bytes) -> bytes:
    """IP, if it begins like that."""
    return data if data[:1] and data[0] >> 4 in (4, 6) else b""


def link(number: int, data: bytes) -> Layer:
    """A frame of this link type, for the core."""
    return "link", number, data


def ethertype(kind: int, data: bytes) -> bytes | Layer:
    """What follows an ethertype, for the core."""
    return data if kind in (0x0800, 0x86DD) else ("ethertype", kind, data)


def ppp(data: bytes) -> Layer:
    """PPP, for the core."""
    return "ethertype", 0x880B, data


def mpls(data: bytes) -> Layer:
    """A label and what is under it, for the core."""
    return "ethertype", 0x8847, data


def llc(data: bytes) -> bytes | Layer:
    """IEEE 802.2: SNAP with an ethertype, IP's own SAP, or ISO's network layer identifier."""
    if data[:3] == b"\xaa\xaa\x03" and len(data) >= 8:
        return ethertype(int.from_bytes(data[6:8], "big"), data[8:]) if data[6] >= 6 else b""
    if data[:3] == b"\x06\x06\x03":
        return data[3:]
    if data[:3] == b"\xfe\xfe\x03":
        return nlpid(data[3:])
    return b""


def nlpid(data: bytes) -> bytes:
    """ISO's network layer identifier (ISO/IEC TR 9577), then the packet."""
    return data[1:] if data[:1] in (b"\xcc", b"\x8e") else b""


def typed(at: int, header: int) -> Reader:
    """A header of fixed length with an ethertype in it."""
    return lambda data: ethertype(int.from_bytes(need(data, header)[at : at + 2], "big"), data[header:])


def fixed(header: int) -> Reader:
    """A header of fixed length, then IP."""
    return lambda data: by_version(need(data, header)[header:])
