"""Parts that the readers of rare link types share: LLC, ethertypes, headers of fixed length.

A reader takes a frame's bytes and returns their content (`Found`). It reads only its own header. Layers that the core
can read are left to the core, so that VLAN tags, MPLS labels and tunnels are read in one place.
"""

from __future__ import annotations

from collections.abc import Callable

Layer = tuple[str, int, bytes]
"""A layer for the core to read: ("link", LINKTYPE_ number, its bytes) or ("ethertype", type, its bytes)."""

One = bytes | str | Layer | None
"""The IP packet, or a layer that contains it; b"" for a frame without a packet; "encrypted", "fragment" or "cut" for a
packet that cannot be read; None for an unknown format. Strings and None are counted in `Capture.issues`."""

Found = One | list[One]
"""The content of a frame; a list for formats that may hold several packets."""

Reader = Callable[[bytes], Found]


def need(data: bytes, size: int) -> bytes:
    """Return the bytes. Raises ValueError if there are fewer than `size`; `read` then reports "cut"."""
    if len(data) < size:
        raise ValueError("cut")
    return data


def by_version(data: bytes) -> bytes:
    """Return the bytes if they begin like IPv4 or IPv6; else b""."""
    return data if data[:1] and data[0] >> 4 in (4, 6) else b""


def link(number: int, data: bytes) -> Layer:
    """Pass a frame of this link type on to the core."""
    return "link", number, data


def ethertype(number: int, data: bytes) -> bytes | Layer:
    """Return the IP packet after an ethertype, or pass another layer on to the core."""
    return data if number in (0x0800, 0x86DD) else ("ethertype", number, data)


def ppp(data: bytes) -> Layer:
    """Pass PPP on to the core."""
    return "ethertype", 0x880B, data


def mpls(data: bytes) -> Layer:
    """Pass an MPLS label and its packet on to the core."""
    return "ethertype", 0x8847, data


def llc(data: bytes) -> bytes | Layer:
    """Read IEEE 802.2: SNAP with an ethertype, the SAP of IP, or ISO's network layer identifier."""
    if data[:3] == b"\xaa\xaa\x03" and len(data) >= 8:
        return ethertype(int.from_bytes(data[6:8], "big"), data[8:]) if data[6] >= 6 else b""
    if data[:3] == b"\x06\x06\x03":
        return data[3:]
    if data[:3] == b"\xfe\xfe\x03":
        return nlpid(data[3:])
    return b""


def nlpid(data: bytes) -> bytes:
    """Read ISO's network layer identifier (ISO/IEC TR 9577); return the IP packet after it, else b""."""
    return data[1:] if data[:1] in (b"\xcc", b"\x8e") else b""


def typed(at: int, header: int) -> Reader:
    """Return a reader of a header of fixed length with an ethertype at offset `at`."""
    return lambda data: ethertype(int.from_bytes(need(data, header)[at : at + 2], "big"), data[header:])


def fixed(header: int) -> Reader:
    """Return a reader of a header of fixed length before IP."""
    return lambda data: by_version(need(data, header)[header:])
