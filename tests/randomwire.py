"""Random captures, a step at a time: whatever two TCP ends, a lossy path and a bad capture can do to each other.

`randomtalk` writes conversations that mean something; here only the numbers meet: sequence numbers that touch, overlap,
leave holes and wrap, windows that close and fill, segments that come twice, late, or from nowhere. Held against tshark.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address

from makepcap import EPOCH_NS, SACK_PERMITTED, mss, pcap_of, sack, timestamps, wscale

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE, RESERVED = (1 << bit for bit in range(10))
TURN = 2**32
WAITS_NS = (0, 1_000, 40_000, 400_000, 2_999_000, 3_000_000, 3_001_000, 19_999_000, 20_000_000, 41_000_000, 210_000_000)


@dataclass
class End:
    """What one end has said so far; raw numbers, those to come are taken modulo 2^32."""

    isn: int
    scale: int | None
    next: int = 0
    ack: int = 0
    window: int = 64_240
    stamp: int = 7
    sent: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.next = self.isn


@dataclass
class Wire:
    """One 4-tuple and whoever uses it. Every connection has its own habits: some steps never, others often."""

    r: random.Random
    ends: tuple[tuple[str, int], tuple[str, int]]

    def __post_init__(self) -> None:
        r = self.r
        self.open(handshake=r.random() < 0.7)
        self.weights = [weight * r.choice([0, 0.3, 1, 1, 3]) for weight, _ in STEPS]
        self.weights[0] += 1
        self.stamped = r.random() < 0.4
        self.one_way = r.choice([None, None, None, None, None, 0, 1])
        self.lost = r.choice([0, 0, 0.02, 0.2])
        self.pending: list[tuple[int, bytes]] = []

    def open(self, handshake: bool) -> None:
        r = self.r
        isns = [r.choice([1000, TURN - r.randrange(1, 4000), TURN - 1, TURN - 1461, r.randrange(TURN)]) for _ in "cs"]
        scales = r.choice([(7, 7), (7, 2), (0, 14), (15, 3), (None, None), (7, None), (None, 3), (255, 1)])
        self.side = [End(isn, scale) for isn, scale in zip(isns, scales, strict=True)]
        if not handshake:
            for end in self.side:
                end.next = (end.isn + 1) % TURN
        self.script = [step for step in (syn, syn_ack, plain_ack) if handshake and r.random() < 0.95]

    def write(
        self,
        who: int,
        flags: int,
        *,
        seq: int | None = None,
        size: int = 0,
        ack: int | None = None,
        window: int | None = None,
        options: tuple[tuple[int, bytes], ...] = (),
    ) -> None:
        """A segment of `who`; without numbers the next ones. `ack` also stands where the flag does not."""
        own, peer = self.side[who], self.side[1 - who]
        seq = (own.next if seq is None else seq) % TURN
        if ack is None:
            ack = own.ack or peer.next
        own.ack = ack = ack % TURN if flags & ACK or self.r.random() < 0.1 else 0
        own.window = own.window if window is None else window
        if self.stamped:
            own.stamp += self.r.choice([0, 1, 40])
            options = (*options, timestamps(own.stamp, self.side[1 - who].stamp))
        end = (seq + size + bool(flags & (SYN | FIN))) % TURN
        if end != seq:
            own.sent = [*own.sent[-40:], (seq, size)]
        if (end - own.next) % TURN < TURN // 2:
            own.next = end
        if who != self.one_way and self.r.random() >= self.lost:
            packet = self.packet(who, flags, seq, ack, own.window, size, options)
            self.pending.append(packet)

    def packet(
        self, who: int, flags: int, seq: int, ack: int, window: int, size: int, options: tuple[tuple[int, bytes], ...]
    ) -> tuple[int, bytes]:
        """What is captured of a segment, with its length on the wire; few bytes of a payload are."""
        (src, sport), (dst, dport) = self.ends[who], self.ends[1 - who]
        listed = b"".join(bytes([kind, len(value) + 2]) + value for kind, value in options)[:40]
        listed += b"\x01" * (-len(listed) % 4)
        offset = (20 + len(listed)) << 10
        tcp = struct.pack("!HHIIHHHH", sport, dport, seq, ack, offset | flags, window, 0, 0) + listed
        source, target = ip_address(src).packed, ip_address(dst).packed
        length = len(tcp) + size
        if len(source) == 4:
            head = struct.pack(
                "!BBHHHBBH4s4s", 0x45, 0, 20 + length, self.r.randrange(65_536), 0, 64, 6, 0, source, target
            )
            kind = 0x0800
        else:
            head = struct.pack("!IHBB16s16s", 6 << 28, length, 6, 64, source, target)
            kind = 0x86DD
        frame = b"\2\0\0\0\0\1\2\0\0\0\0\2" + struct.pack("!H", kind) + head + tcp
        whole = len(frame) + size
        if self.r.random() < 0.7:
            frame += b"\0" * min(size, 4)
        else:
            frame += bytes(size)
            frame, whole = frame.ljust(60, b"\0"), max(whole, 60)  # what Ethernet pads is no payload
        return whole, frame

    def step(self) -> list[tuple[int, bytes]]:
        self.pending = []
        if self.script:
            self.script.pop(0)(self)
        else:
            choose(self.r, self.weights)(self)
        return self.pending


def choose(r: random.Random, weights: list[float]) -> Callable[[Wire], None]:
    return r.choices([step for _, step in STEPS], weights)[0]


def either(wire: Wire) -> tuple[int, End, End]:
    who = wire.r.randrange(2)
    return who, wire.side[who], wire.side[1 - who]


def amount(r: random.Random) -> int:
    return r.choice([1, 2, 7, 100, 536, 1460, 1460, 2920, r.randrange(1, 20_000)])


# the steps


def data(wire: Wire) -> None:
    who, _, peer = either(wire)
    for _ in range(wire.r.choice([1, 1, 2, 5])):
        wire.write(who, ACK | wire.r.choice([0, PSH]), size=amount(wire.r), ack=wire.r.choice([None, peer.next]))


def plain_ack(wire: Wire) -> None:
    """All of it, a part that ends where a segment ended, or somewhere else."""
    who, own, peer = either(wire)
    r = wire.r
    seq, size = r.choice(peer.sent) if peer.sent else (peer.next, 0)
    ack = r.choice([peer.next, peer.next, seq, seq + size, seq + size // 2])
    window = r.choice([None, None, own.window, 64_240, 1000, 100, 1, 0])
    wire.write(who, ACK, ack=ack, window=window)


def repeat_ack(wire: Wire) -> None:
    """The same once more: duplicate ACKs, with and without blocks, window updates, closed windows."""
    who, own, peer = either(wire)
    r = wire.r
    for _ in range(r.choice([1, 2, 3, 5])):
        options: tuple[tuple[int, bytes], ...] = ()
        if r.random() < 0.5:
            lefts = [peer.next - r.choice([10_000, 3000, 1460, 100, 0, -500]) for _ in range(r.randint(1, 4))]
            blocks = [(left, left + r.choice([1, 100, 1460, 3000])) for left in lefts]
            if r.random() < 0.4:  # DSACK: below the ACK, or inside the block behind it (RFC 2883)
                first = own.ack - r.choice([1460, 100, 0])
                inner = blocks[0][0], blocks[0][1] - r.choice([0, 1, 50])
                blocks.insert(0, r.choice([(first, first + 100), (first, own.ack), inner]))
            options = (sack(*blocks[:4]),)
        wire.write(who, ACK, ack=own.ack, window=r.choice([None, None, None, own.window + 1, 0]), options=options)


def again(wire: Wire) -> None:
    """A segment that was sent: as it was, cut, grown, or from the middle."""
    who, own, peer = either(wire)
    r = wire.r
    if not own.sent:
        return
    seq, size = r.choice(own.sent[-r.choice([1, 3, 40]) :])
    size = max(size, 1)
    start, more = r.choice([(0, 0), (0, 0), (0, 0), (0, -1), (0, 1460), (1, 0), (size // 2, 0), (-1, 0)])
    new = min(max(size - start + more, 1), 60_000)
    wire.write(who, ACK | r.choice([0, PSH]), seq=seq + start, size=new, ack=r.choice([None, peer.next]))


def fill_hole(wire: Wire) -> None:
    """What the other end waits for: what duplicate ACKs make a fast retransmission."""
    who, _, peer = either(wire)
    if peer.ack:
        for _ in range(wire.r.choice([0, 2, 3])):
            wire.write(1 - who, ACK, ack=peer.ack)
        wire.write(who, ACK, seq=peer.ack, size=amount(wire.r))


def hole(wire: Wire) -> None:
    """Bytes that the capture does not have; some of them come later."""
    who, own, _ = either(wire)
    r = wire.r
    start, size = own.next, amount(r)
    wire.write(who, ACK, seq=start + size, size=r.choice([0, amount(r)]))
    if r.random() < 0.5:
        wire.write(who, ACK, seq=start, size=size)


def keep_alive(wire: Wire) -> None:
    who, own, _ = either(wire)
    r = wire.r
    for _ in range(r.randint(1, 3)):
        wire.write(who, ACK, seq=own.next - 1, size=r.choice([0, 1, 1, 2, 9]))
        if r.random() < 0.7:
            wire.write(1 - who, ACK, ack=r.choice([None, own.next]))


def closed_window(wire: Wire) -> None:
    who, own, peer = either(wire)
    r = wire.r
    wire.write(who, ACK, ack=peer.next, window=0)
    for _ in range(r.randint(0, 3)):
        wire.write(1 - who, ACK, size=r.choice([0, 1, 1, 1, 5]), seq=r.choice([None, peer.next - 1, peer.next]))
        if r.random() < 0.7:
            wire.write(who, ACK, ack=r.choice([own.ack, peer.next, own.ack + 1]), window=r.choice([0, 0, own.window]))
    if r.random() < 0.6:
        wire.write(who, ACK, window=r.choice([64_240, 500]))


def full_window(wire: Wire) -> None:
    """Up to the last byte that the other end allows, or one beside it; in segments that fit into IP."""
    who, own, peer = either(wire)
    shift = peer.scale or 0
    room = (peer.ack + (peer.window << min(shift, 14)) - own.next) % TURN + wire.r.choice([0, 0, 0, 1, -1])
    while 0 < room < 400_000:
        size = min(room, 60_000)
        wire.write(who, ACK, size=size)
        room -= size


def unseen(wire: Wire) -> None:
    """Acknowledges what the capture never saw."""
    who, _, peer = either(wire)
    beyond = peer.next + wire.r.choice([1, 1460, 100_000])
    for _ in range(wire.r.randint(1, 3)):
        wire.write(who, ACK, ack=beyond)
    if wire.r.random() < 0.5:
        wire.write(1 - who, ACK, seq=wire.r.choice([beyond, peer.next]), size=amount(wire.r))


def offers(wire: Wire, end: End) -> tuple[tuple[int, bytes], ...]:
    options = [mss(wire.r.choice([1460, 536, 65_495])), SACK_PERMITTED]
    if end.scale is not None:
        options.append(wscale(end.scale))
    return tuple(options[wire.r.choice([0, 0, 0, 1, 2]) :])


def syn(wire: Wire) -> None:
    own = wire.side[0]
    size = wire.r.choice([0, 0, 0, 0, 0, 100])
    flags = SYN | wire.r.choice([0, 0, 0, ECE | CWR])
    wire.write(0, flags, seq=own.isn, size=size, ack=0, options=offers(wire, own))


def syn_ack(wire: Wire) -> None:
    own, peer = wire.side[1], wire.side[0]
    isn = own.isn + wire.r.choice([0, 0, 0, 0, 0, 0, 0, 0, 77])
    wire.write(1, SYN | ACK, seq=isn, ack=peer.isn + 1, options=offers(wire, own))


def syn_repeat(wire: Wire) -> None:
    wire.r.choice([syn, syn_ack, crossing_syn])(wire)


def crossing_syn(wire: Wire) -> None:
    own = wire.side[1]
    wire.write(1, SYN, seq=own.isn, ack=0, options=offers(wire, own))


def reuse(wire: Wire) -> None:
    """The ports once more, with or without a handshake."""
    wire.open(handshake=wire.r.random() < 0.8)


def finish(wire: Wire) -> None:
    r = wire.r
    first, _, _ = either(wire)
    for who in r.choice([(first,), (first, 1 - first), (first, first)]):
        own, peer = wire.side[who], wire.side[1 - who]
        wire.write(who, FIN | r.choice([ACK, ACK, ACK, ACK | PSH, 0]), size=r.choice([0, 0, 0, 300]), ack=peer.next)
        if r.random() < 0.2:
            wire.write(who, FIN | ACK, seq=own.next - 1)
        if r.random() < 0.8:
            wire.write(1 - who, ACK, ack=own.next)


def reset(wire: Wire) -> None:
    who, own, peer = either(wire)
    r = wire.r
    seq = r.choice([None, None, peer.ack, own.next + 5000, own.isn, 0])
    wire.write(who, RST | r.choice([0, ACK]), seq=seq, size=r.choice([0, 0, 0, 20]), window=r.choice([None, 0]))


def odd_flags(wire: Wire) -> None:
    who, _, _ = either(wire)
    r = wire.r
    flags = r.choice([0, PSH, URG, FIN, SYN | FIN, SYN | RST, r.randrange(4096), ACK | AE | ECE, ACK | RESERVED])
    wire.write(who, flags, size=r.choice([0, 0, 1, 50]))


def odd_options(wire: Wire) -> None:
    """Options where they do not belong, of lengths that cannot be, twice, or cut at the header's end.

    No SACK option with half a block: tshark 4.0 gives up on the packet there ("malformed").
    """
    who, _, peer = either(wire)
    r = wire.r
    odd = [wscale(3), mss(1000), SACK_PERMITTED, (8, b"abc"), (253, b"xy"), (19, b"k" * 16)]
    odd += [sack((peer.next, peer.next + 9)), (2, b"x"), (3, b""), timestamps(5, 6), (4, b"z")]
    wire.write(who, ACK, size=r.choice([0, 10]), options=tuple(r.sample(odd, r.randint(1, 3))))


STEPS: list[tuple[float, Callable[[Wire], None]]] = [
    (20, data), (20, plain_ack), (6, repeat_ack), (6, again), (4, fill_hole), (4, hole), (2, keep_alive),
    (3, closed_window), (3, full_window), (2, unseen), (0.7, syn_repeat), (0.3, reuse), (1, finish), (0.7, reset),
    (0.4, odd_flags), (0.4, odd_options),
]  # fmt: skip

HOSTS = [
    (("10.0.0.1", 40_000), ("10.0.0.2", 5001)),
    (("10.0.0.9", 40_000), ("10.0.0.2", 40_000)),
    (("127.0.0.1", 40_001), ("127.0.0.1", 5001)),
    (("fd00::1", 40_000), ("fd00::2", 5001)),
    (("::1", 5001), ("::1", 40_000)),
    (("::ffff:10.0.0.1", 40_000), ("::ffff:10.0.0.2", 5001)),
]


def quoted(r: random.Random, frame: bytes) -> bytes:
    """An ICMP error about a segment: its headers, and some of its payload. (tshark gives up where options are cut.)"""
    at = 14 + (20 if frame[12:14] == b"\x08\0" else 40)
    header = frame[at + 12] >> 2 & 60
    inner = frame[14 : at + header + r.choice([0, 2, 40])]
    if frame[12:14] == b"\x08\0":
        error = struct.pack("!BBHI", 3, 1, 0, 0) + inner
        return (
            frame[:14]
            + struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(error), 0, 0, 64, 1, 0, b"\n\0\0c", inner[12:16])
            + error
        )
    error = struct.pack("!BBHI", 1, 4, 0, 0) + inner
    return frame[:14] + struct.pack("!IHBB16s16s", 6 << 28, len(error), 58, 64, inner[24:40], inner[8:24]) + error


def capture(seed: int, frames: int = 2000, connections: int = 6) -> bytes:
    """A pcap (ns) of that many frames; connections take turns, and the path may shuffle, double or quote."""
    r = random.Random(seed)
    wires = [
        Wire(random.Random(r.random()), (((a, p + i), b)))
        for i in range(connections)
        for (a, p), b in [r.choice(HOSTS)]
    ]
    waits = [r.random() ** 2 for _ in WAITS_NS]
    shuffles, doubles, back, quotes = (r.choice([0, 0, 0.01, 0.05]) for _ in range(4))
    now, tape = EPOCH_NS, []
    while len(tape) < frames:
        now += r.choices(WAITS_NS, waits)[0]
        for whole, frame in r.choice(wires).step():
            now += r.choice([0, 1, 1000, 10_000]) - (r.random() < back) * r.choice([1, 1000, 5_000_000])
            tape.append((now, whole, frame))
            if r.random() < doubles:
                tape.append((now + 1000, whole, frame))
            if r.random() < shuffles and len(tape) > 2:
                (a, *one), (b, *two) = tape[-2:]
                tape[-2:] = [(a, *two), (b, *one)]
            if r.random() < quotes:
                note = quoted(r, frame)
                tape.append((now, len(note), note))
    return pcap_of(((at, frame) for at, _, frame in tape), nanos=True, lengths=[whole for _, whole, _ in tape])
