"""Captures of raw IP, packet by packet: what is no TCP, or no whole connection."""

from __future__ import annotations

import struct

import dpkt
from makepcap import EPOCH_NS


def packet(src: int, dst: int, protocol: int, body: bytes, ttl: int = 1) -> bytes:
    ends = bytes([10, 0, 0, src]), bytes([10, 0, 0, dst])
    return bytes(dpkt.ip.IP(src=ends[0], dst=ends[1], p=protocol, ttl=ttl, data=body, len=20 + len(body)))


def icmp(kind: int, rest: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">BBH", kind, 0, 0) + rest + body


def file(*packets: bytes) -> bytes:
    """A raw-IP pcap, one packet a millisecond."""
    out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
    for n, raw in enumerate(packets):
        seconds, nanos = divmod(EPOCH_NS + n * 1_000_000, 1_000_000_000)
        out += struct.pack("<IIII", seconds, nanos, len(raw), len(raw)) + raw
    return out
