"""The layers of each frame and their addresses, from the capture's records, which are read again.

Returns the ends of each Ethernet, IP and UDP layer and the names of all layers, outermost first, as Wireshark counts
them: packets quoted in ICMP errors are left out, and a fragmented datagram counts in the frame that completes it.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from latpcap.reading.filters.dissect import Datagram, Frame
from latpcap.reading.reread import Record

End: TypeAlias = tuple[str, int | None]
"""An address, and a port where the layer has one."""
_OUTER = {
    12: "raw",
    14: "raw",
    101: "raw",
    0: "null",
    108: "null",
    113: "sll",
    276: "sll",
    104: "chdlc",
    9: "ppp",
    50: "ppp",
    105: "wlan",
    127: "wlan",
}
_MAX_HEADS = 1 << 16
"""Upper bound on the pairs of hosts whose TCP frames are decoded only once."""
_MAX_DATAGRAMS = 4096
"""Upper bound on the incomplete datagrams kept; the oldest is dropped."""


class Ends(NamedTuple):
    """One layer of a frame: "eth", "ip", "ipv6" or "udp", its source and its target."""

    layer: str
    source: End
    target: End


class Layers(NamedTuple):
    """One frame: its number, the ends of its layers, and the names of all layers."""

    frame: int
    ends: list[Ends]
    path: list[str]


def decode(records: Iterable[Record]) -> Iterator[Layers]:
    """Yield each frame's layers."""
    waiting = _Datagrams()
    by_head: dict[bytes, _Walk] = {}
    for record in records:
        head = _head(record)
        if head is not None and head in by_head:
            yield Layers(record.frame, by_head[head].ends, by_head[head].path)
            continue
        walk = _Walk(waiting)
        with contextlib.suppress(IndexError, struct.error):  # truncated or damaged: the layers before it count
            if record.link in _OUTER:
                walk.path.append(_OUTER[record.link])
            walk.link(record.data, record.link)
        if head is not None and len(by_head) < _MAX_HEADS:
            by_head[head] = walk
        yield Layers(record.frame, walk.ends, walk.path)


def _head(record: Record) -> bytes | None:
    """Return the bytes of an untagged Ethernet frame that its layers depend on, if it carries unfragmented TCP."""
    data = record.data
    if record.link != 1 or len(data) < 54:
        return None
    kind = data[12:14]
    if kind == b"\x08\0" and data[14] == 0x45 and data[23] == 6 and data[20:22] in (b"\0\0", b"\x40\0"):
        return data[:14] + data[26:34]
    if kind == b"\x86\xdd" and data[20] == 6 and len(data) >= 74:
        return data[:14] + data[22:54]
    return None


class _Datagrams:
    """Collects fragments until their datagram is complete."""

    def __init__(self) -> None:
        self._parts: dict[Datagram, dict[int, bytes]] = {}
        self._sizes: dict[Datagram, int] = {}

    def whole(self, datagram: Datagram, offset: int, last: bool, data: bytes) -> bytes | None:
        """Return the datagram, if this fragment completes it."""
        if datagram not in self._parts and len(self._parts) >= _MAX_DATAGRAMS:
            oldest = next(iter(self._parts))
            del self._parts[oldest]
            self._sizes.pop(oldest, None)
        parts = self._parts.setdefault(datagram, {})
        parts.setdefault(offset, data)
        if last:
            self._sizes[datagram] = offset + len(data)
        if sum(map(len, parts.values())) < self._sizes.get(datagram, 1 << 17):
            return None
        del self._parts[datagram], self._sizes[datagram]
        return b"".join(parts[offset] for offset in sorted(parts))


class _Walk(Frame):
    def __init__(self, waiting: _Datagrams) -> None:
        super().__init__(None, None)
        self.waiting = waiting
        self.ends: list[Ends] = []
        self.path: list[str] = []

    def add(self, name: str, value: object) -> None:
        """Ignore all fields."""

    def name(self, layer: str) -> None:
        if not self.quoted:
            self.path.append(layer)

    def layer(self, *names: str) -> None:
        for name in names:
            if name != "ethertype":
                self.name(name)

    def ethernet(self, data: bytes, depth: int = 0) -> None:
        self.name("eth")
        if int.from_bytes(data[12:14], "big") < 0x600:
            self.name("llc")
        if len(data) >= 14 and not self.quoted:
            self.ends.append(Ends("eth", (data[6:12].hex(":"), None), (data[:6].hex(":"), None)))
        super().ethernet(data, depth)

    def by_ethertype(self, kind: int, data: bytes, depth: int) -> None:
        while kind in (0x8100, 0x88A8, 0x9100):
            self.name("vlan")
            kind, data = struct.unpack_from(">H", data, 2)[0], data[4:]
        if kind in (0x8864, 0x8847):
            self.name("pppoes" if kind == 0x8864 else "mpls")
        super().by_ethertype(kind, data, depth)

    def arp(self, data: bytes) -> None:
        self.name("arp")

    def addresses(self, name: str, source: str, target: str) -> None:
        self.hosts = source, target
        self.name(name)
        if not self.quoted:
            self.ends.append(Ends(name, (source, None), (target, None)))

    def fragment(self, datagram: Datagram, offset: int, last: bool, data: bytes, depth: int) -> None:
        payload = None if self.quoted else self.waiting.whole(datagram, offset, last, data)
        if payload is not None:
            self.by_ip_protocol(datagram[2], payload, depth)

    def icmp(self, data: bytes, depth: int) -> None:
        self.name("icmp")
        super().icmp(data, depth)

    def icmp6(self, data: bytes, depth: int) -> None:
        self.name("icmpv6")
        super().icmp6(data, depth)

    def gre(self, data: bytes, depth: int) -> None:
        self.name("gre")
        super().gre(data, depth)

    def udp(self, data: bytes, depth: int) -> None:
        self.name("udp")
        if not self.quoted:
            source, target = struct.unpack_from(">HH", data, 0)
            self.ends.append(Ends("udp", (self.hosts[0], source), (self.hosts[1], target)))
        super().udp(data, depth)

    def tcp(self, data: bytes, depth: int) -> None:
        self.name("tcp")

    def dns(self, data: bytes, protocol: str) -> None:
        self.name(protocol)
