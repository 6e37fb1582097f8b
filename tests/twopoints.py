"""Two captures of one simulated connection each, at two points: a script of packets with instants at both.

`Wire` sends packets over a line with given delays; what it did (lost, doubled) it remembers. The capture at B can have
another clock, rewritten headers, missing frames, cut segments. Times are ns since `EPOCH_NS`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from makepcap import EPOCH_NS, Ends, Segment, pcap

MS = 1_000_000
MSS = 1460


@dataclass
class Wire:
    """Two ends, a line between two points. `lose` says of a packet's number whether it is lost."""

    there_ms: float = 4.0
    back_ms: float = 4.0
    jitter_ms: float = 0.02
    seed: int = 1
    lose: Callable[[int], bool] = lambda number: False
    double: Callable[[int], bool] = lambda number: False
    at_a: list[tuple[int, int, Segment]] = field(default_factory=list)
    at_b: list[tuple[int, int, Segment]] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def send(self, time_ns: int, segment: Segment) -> int | None:
        """A packet leaves at this instant; when it arrives, or None."""
        up = segment.from_client
        delay = int(((self.there_ms if up else self.back_ms) + self.random.expovariate(1) * self.jitter_ms) * MS)
        number, self.number = self.number, self.number + 1
        near, far = (self.at_a, self.at_b) if up else (self.at_b, self.at_a)
        near.append((time_ns, number, segment))
        if self.lose(number):
            self.lost.append(number)
            return None
        far.append((time_ns + delay, number, segment))
        if self.double(number):
            self.doubled.append(number)
            far.append((time_ns + delay + MS // 10, number, segment))
        return time_ns + delay

    def frames(self, at_b: bool) -> list[tuple[int, int, Segment]]:
        """What a point saw, in order of time: instant, number, packet."""
        return sorted(self.at_b if at_b else self.at_a, key=lambda seen: seen[0])


@dataclass
class Talker:
    """One connection: requests of the client, answers of the server after its program's pause."""

    wire: Wire
    ends: Ends
    stamps: bool = True

    def __post_init__(self) -> None:
        self.seq = {True: self.wire.random.getrandbits(32), False: self.wire.random.getrandbits(32)}
        self.start = dict(self.seq)
        self.ids = {True: self.wire.random.getrandbits(16), False: self.wire.random.getrandbits(16)}
        self.echo = {True: 0, False: 0}
        self.zero = {True: self.wire.random.getrandbits(31), False: self.wire.random.getrandbits(31)}

    def packet(self, time_ns: int, from_client: bool, flags: str, payload: bytes = b"", back: int = 0) -> Segment:
        """The next packet of one side; `back` is how many bytes before its newest it begins."""
        self.ids[from_client] = (self.ids[from_client] + 1) % (1 << 16)
        stamp = (time_ns // MS + self.zero[from_client]) % (1 << 32)
        options = ()
        if self.stamps:
            options = ((8, stamp.to_bytes(4, "big") + self.echo[from_client].to_bytes(4, "big")),)
            self.echo[not from_client] = stamp
        ack = 0 if flags == "S" else self.seq[not from_client]
        made = Segment(
            from_client, flags, self.seq[from_client] - back, ack, payload, options=options,
            ip_id=self.ids[from_client] or 1, ends=self.ends,
        )  # fmt: skip
        self.seq[from_client] += len(payload) - back + ("S" in flags) + ("F" in flags)
        return made

    def open(self, time_ns: int) -> int:
        """The handshake; when it is over at the client."""
        there = self.wire.send(time_ns, self.packet(time_ns, True, "S")) or time_ns + 4 * MS
        back = self.wire.send(there, self.packet(there, False, "SA")) or there + 4 * MS
        self.wire.send(back, self.packet(back, True, "A"))
        return back

    def ask(self, time_ns: int, target: str, pause_ms: float, size: int) -> int:
        """A request and its answer, repeated after 200 ms where a packet of it was lost; when it is over."""
        text = f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        arrived = self.wire.send(time_ns, self.packet(time_ns, True, "PA", text))
        while arrived is None:
            time_ns += 200 * MS
            arrived = self.wire.send(time_ns, self.packet(time_ns, True, "PA", text, back=len(text)))
        now = arrived + int(pause_ms * MS)
        answer = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode() + b"x" * size
        over = now
        for begin in range(0, len(answer), MSS):
            part = answer[begin : begin + MSS]
            came = self.wire.send(now, self.packet(now, False, "PA", part))
            sent = now
            while came is None:
                sent += 200 * MS
                came = self.wire.send(sent, self.packet(sent, False, "PA", part, back=len(part)))
            over = max(over, came)
            now = max(now, sent) + MS // 100
        self.wire.send(over, self.packet(over, True, "A"))
        return over


def talk(wire: Wire, *, connections: int = 3, requests: int = 20, pause_ms: float = 30.0, stamps: bool = True) -> None:
    """Connections that ask one after the other, with pauses."""
    for number in range(connections):
        talker = Talker(wire, Ends(("10.0.0.1", 40_000 + number), ("10.0.0.2", 80)), stamps)
        now = talker.open(number * 7 * MS)
        for asked in range(requests):
            now = talker.ask(now + int(wire.random.uniform(1, pause_ms) * MS), f"/{number}/{asked}", 5.0,
                             wire.random.choice([100, 4000]))  # fmt: skip


def capture(
    seen: list[tuple[int, int, Segment]],
    *,
    clock: Callable[[int], int] = int,
    change: Callable[[Segment], Segment] = lambda segment: segment,
) -> bytes:
    """The bytes of a point's capture by its own clock, its packets changed."""
    return pcap([replace(change(segment), time_ns=EPOCH_NS + clock(time)) for time, _, segment in seen])
