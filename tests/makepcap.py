"""Captures made in memory: a script of segments in, the bytes of a pcap or pcapng file out.

    talk = Talk(server_leg=0.01, client_leg=1.0)
    talk.open()
    asked = talk.client(10.0, b"GET / HTTP/1.1\\r\\n\\r\\n")      # frame number; times in ms
    capture = pcap(talk.tape)

dpkt writes the packets, so that two decoders have to agree: dpkt's and latpcap's.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address

import dpkt

EPOCH_NS = 1_700_000_000_000_000_000
BITS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16, "U": 32, "E": 64, "C": 128}
MSS = 1460


@dataclass(frozen=True)
class Ends:
    """The two endpoints: address and port of client and server."""

    client: tuple[str, int] = ("10.0.0.1", 40_000)
    server: tuple[str, int] = ("10.0.0.2", 80)


@dataclass(frozen=True)
class Segment:
    """One TCP segment of a script; raw sequence numbers, time in ns since 1970, options as dpkt has them."""

    from_client: bool
    flags: str
    seq: int
    ack: int
    payload: bytes = b""
    time_ns: int = EPOCH_NS
    window: int = 64_240
    options: tuple[tuple[int, bytes], ...] = ()
    ip_id: int = 0
    ends: Ends = Ends()

    @property
    def bits(self) -> int:
        return sum(BITS[letter] for letter in self.flags)

    def frame(self) -> bytes:
        """The segment in TCP, IP or IPv6, and Ethernet."""
        (src, sport), (dst, dport) = (
            (self.ends.client, self.ends.server) if self.from_client else (self.ends.server, self.ends.client)
        )
        options = b"".join(bytes([kind, len(value) + 2]) + value for kind, value in self.options)
        options += b"\x01" * (-len(options) % 4)
        tcp = dpkt.tcp.TCP(
            sport=sport,
            dport=dport,
            seq=self.seq % 2**32,
            ack=self.ack % 2**32,
            flags=self.bits,
            win=self.window,
            opts=options,
            data=self.payload,
        )
        tcp.off = (20 + len(options)) // 4
        source, target = ip_address(src).packed, ip_address(dst).packed
        if len(source) == 4:
            packet = dpkt.ip.IP(src=source, dst=target, p=6, id=self.ip_id, ttl=64, data=tcp)
            packet.len = len(packet)
            kind = dpkt.ethernet.ETH_TYPE_IP
        else:
            packet = dpkt.ip6.IP6(src=source, dst=target, nxt=6, hlim=64, plen=len(tcp), data=tcp)
            kind = dpkt.ethernet.ETH_TYPE_IP6
        sides = (b"\x02\0\0\0\0\1", b"\x02\0\0\0\0\2")
        ether = sides if self.from_client else sides[::-1]
        return bytes(dpkt.ethernet.Ethernet(src=ether[0], dst=ether[1], type=kind, data=bytes(packet)))


def mss(value: int = MSS) -> tuple[int, bytes]:
    return (2, struct.pack("!H", value))


def wscale(shift: int) -> tuple[int, bytes]:
    return (3, bytes([shift]))


SACK_PERMITTED = (4, b"")


def sack(*blocks: tuple[int, int]) -> tuple[int, bytes]:
    return (5, b"".join(struct.pack("!II", left % 2**32, right % 2**32) for left, right in blocks))


def timestamps(value: int, echo: int) -> tuple[int, bytes]:
    return (8, struct.pack("!II", value % 2**32, echo % 2**32))


@dataclass
class Side:
    """One direction's numbers while a script is written."""

    isn: int
    sent: int = 0
    ip_id: int = 1
    tsval: int = 0
    window: int = 64_240


@dataclass
class Talk:
    """One connection: `client` and `server` write a segment each, the numbers follow. Times in ms.

    `client_leg` and `server_leg`: the path from the capture to that end and back. Several talks may share a tape.
    """

    server_leg: float = 0.01
    client_leg: float = 1.0
    ends: Ends = Ends()
    tape: list[Segment] = field(default_factory=list)
    stamped: bool = False
    isn: tuple[int, int] = (1000, 5000)
    scale: int | None = 7
    client_window: int = 64_240

    def __post_init__(self) -> None:
        self.c, self.s = Side(self.isn[0], window=self.client_window), Side(self.isn[1])

    def client(self, ms: float, payload: bytes = b"", flags: str = "", **more: object) -> int:
        return self._add(True, ms, payload, flags, **more)

    def server(self, ms: float, payload: bytes = b"", flags: str = "", **more: object) -> int:
        return self._add(False, ms, payload, flags, **more)

    def _add(
        self,
        from_client: bool,
        ms: float,
        payload: bytes,
        flags: str,
        *,
        seq: int | None = None,
        ack: int | None = None,
        window: int | None = None,
        options: Iterable[tuple[int, bytes]] = (),
    ) -> int:
        """`seq` and `ack` are relative (1 is the first byte); without them the next ones."""
        own, peer = (self.c, self.s) if from_client else (self.s, self.c)
        flags = flags or ("PA" if payload else "A")
        at = EPOCH_NS + round(ms * 1_000_000)
        options = tuple(options)
        if self.stamped:
            own.tsval = (500 if from_client else 900) + at // 1_000_000 % 10_000_000
            options = (*options, timestamps(own.tsval, peer.tsval))
        number = own.sent if seq is None else seq
        answer = (peer.sent if ack is None else ack) + peer.isn if "A" in flags else 0
        self.tape.append(
            Segment(
                from_client,
                flags,
                own.isn + number,
                answer,
                payload,
                at,
                own.window if window is None else window,
                options,
                own.ip_id,
                self.ends,
            )
        )
        own.ip_id += 1
        own.sent = max(own.sent, number + len(payload) + ("S" in flags) + ("F" in flags))
        return len(self.tape)

    def open(self, ms: float = 0.0) -> None:
        """The handshake, each end as prompt as its leg."""
        offers = [mss(), SACK_PERMITTED, *([] if self.scale is None else [wscale(self.scale)])]
        self.client(ms, flags="S", options=offers)
        self.server(ms + self.server_leg, flags="SA", options=offers)
        self.client(ms + self.server_leg + self.client_leg)


def get(target: str = "/", method: str = "GET", *lines: str) -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: h", *lines, "", ""]).encode()


def answer(body: int, status: str = "200 OK", *lines: str) -> tuple[bytes, bytes]:
    """Head and body of an answer."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {body}", *lines, "", ""]).encode()
    return head, b"x" * body


def pcap(tape: Iterable[Segment], *, nanos: bool = False, big: bool = False, snaplen: int = 262_144) -> bytes:
    return pcap_of(((s.time_ns, s.frame()) for s in tape), nanos=nanos, big=big, snaplen=snaplen)


def pcap_of(
    packets: Iterable[tuple[int, bytes]],
    *,
    nanos: bool = False,
    big: bool = False,
    snaplen: int = 262_144,
    lengths: list[int] | None = None,
) -> bytes:
    """`lengths`: what the frames had on the wire, where that is more than their bytes here."""
    order = ">" if big else "<"
    magic, unit = (0xA1B23C4D, 1) if nanos else (0xA1B2C3D4, 1000)
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, 1)]
    for number, (time_ns, frame) in enumerate(packets):
        kept, whole = frame[:snaplen], len(frame) if lengths is None else lengths[number]
        seconds, rest = divmod(time_ns, 1_000_000_000)
        out.append(struct.pack(order + "IIII", seconds, rest // unit, len(kept), whole) + kept)
    return b"".join(out)


def pcapng(tape: Iterable[Segment], *, big: bool = False, nanos: bool = True) -> bytes:
    """A section, an interface (nanoseconds by if_tsresol) and one enhanced packet block a segment."""
    order = ">" if big else "<"

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + size + body + size

    resolution = struct.pack(order + "HHB3xHH", 9, 1, 9, 0, 0) if nanos else b""
    out = [
        block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack(order + "HHI", 1, 0, 0) + resolution),
    ]
    for s in tape:
        frame, ticks = s.frame(), s.time_ns // (1 if nanos else 1000)
        head = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        out.append(block(6, head + frame))
    return b"".join(out)


def address(packed: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


TICK_MS = 4.0


def held(ack_earliest: float) -> float:
    """When a kernel timer of at least that time ends: on the next tick of 4 ms, and a little after it."""
    ticks = -(-ack_earliest // TICK_MS)
    return ticks * TICK_MS + 0.05
