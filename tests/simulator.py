"""Two hosts, a path and a tap: captures of any situation, with the truth about every wait.

The hosts keep to Nagle's rule with Minshall's change and to delayed ACKs as Linux has them (quick ACKs at the start,
ping-pong mode, a timer on the host's tick), the path has a length and a jitter on both sides of the tap, and keeps
packets in order. What the programs do is a `Script`. So the cause of every gap is known, whatever the path made of it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from makepcap import EPOCH_NS, MSS, SACK_PERMITTED, Ends, Segment, mss, timestamps, wscale

MS = 1_000_000


@dataclass(frozen=True)
class Script:
    """What the two programs do, again and again. Each write is (pause before it in ms, payload)."""

    request: tuple[tuple[float, bytes], ...]
    answer: tuple[tuple[float, bytes], ...]
    exchanges: int = 20
    client_think: tuple[float, float] = (0.2, 4.0)
    server_think: tuple[float, float] = (0.05, 0.4)
    pipelined: int = 1
    """Requests written before their answers are waited for."""
    stamped: bool = True
    """With TCP's timestamps option."""
    alter: Callable[[int, Script], Script] | None = None
    """Another script for the exchange of this number."""

    def at(self, number: int) -> Script:
        return self.alter(number, self) if self.alter else self


@dataclass(frozen=True)
class Host:
    """How one side's sockets and kernel are set."""

    nodelay: bool = False
    delack_ms: float = 40.0
    tick_ms: float = 4.0
    quickack: bool = False
    """Every ACK at once, as with TCP_QUICKACK after each read."""
    quick: int = 16
    """Segments acknowledged at once at the start, until it answers itself."""
    busy_ms: float = 0.0
    """Mean extra time of a loaded host before it reacts."""
    clock_ms: int = 1
    """Its time stamps count milliseconds, but stand still for so many."""
    small_unacked: bool = True
    """Minshall's change: only small unacknowledged segments hold a small one back."""


@dataclass(frozen=True)
class Path:
    """One-way times in ms from the client to the tap and from there to the server; jitter on each side of it."""

    client_ms: float = 1.0
    server_ms: float = 0.005
    jitter_ms: float = 0.0
    burst_ms: float = 0.0
    burst_share: float = 0.1
    asymmetry: float = 1.0
    """The way back takes so many times the way there."""
    kbit_s: float = 0.0
    """The rate of a half that is no wire, each way; 0: none is too fast."""

    def takes(self, ms: float, data: bytes) -> float:
        """How long this half, which is so long, takes to send such a packet."""
        return 8 * (66 + len(data)) / self.kbit_s if self.kbit_s and ms > 0.05 else 0.0

    def extra(self, rng: random.Random) -> float:
        if self.burst_ms and rng.random() < self.burst_share:
            return rng.uniform(0, self.burst_ms)
        return rng.expovariate(1 / self.jitter_ms) if self.jitter_ms else 0.0


PLAIN, NEAR, ENDS = Host(), Path(), Ends()


@dataclass
class Truth:
    """One exchange: did a sender's Nagle wait there for an ACK that the other side's timer held?"""

    asked_ns: int = 0
    """When its first byte passed the tap."""
    stalled: bool = False
    waits: list[tuple[str, float]] = field(default_factory=list)


class Socket:
    """One end of a connection."""

    def __init__(self, net: Net, client: bool, host: Host, phase: float):
        self.net, self.client, self.host = net, client, host
        self.phase = round(phase * host.tick_ms * MS)
        self.peer: Socket
        self.sent = self.acked = self.small_end = 0
        self.queue = b""
        self.queued_at = 0
        self.received = self.confirmed = 0
        self.quick, self.pingpong, self.pushed = host.quick, False, 0
        self.last_data = -(10**18)
        self.timer = 0
        self.inbox = b""
        self.reader: Callable[[], None] = lambda: None
        self.tsval_base = net.rng.randrange(2**30)
        self.echo, self.ip_id = 0, net.rng.randrange(60_000)

    def tsval(self, at: int | None = None) -> int:
        """Its time stamp now, or at that time."""
        ms = (self.net.now if at is None else at) // MS
        return (self.tsval_base + ms // self.host.clock_ms * self.host.clock_ms) % 2**32

    def write(self, data: bytes) -> None:
        if not self.queue:
            self.queued_at = self.net.now
        self.queue += data
        self.push("written")

    def push(self, why: str) -> None:
        while self.queue:
            chunk = self.queue[:MSS]
            unacked = self.acked < self.small_end if self.host.small_unacked else self.acked < self.sent
            if len(chunk) < MSS and not self.host.nodelay and unacked:
                return
            self.queue = self.queue[MSS:]
            waited = (self.net.now - self.queued_at) / MS
            if why == "timer" and waited > 0.001:
                self.net.freed(self, waited)
            self.transmit(chunk, "data")
            why = "more"

    def transmit(self, data: bytes, why: str, flags: str = "") -> None:
        if data:
            if self.net.now - self.last_data < 40 * MS:
                self.pingpong = True
            if len(data) < MSS:
                self.small_end = self.sent + len(data)
        self.net.send(self, data, flags or ("PA" if data else "A"), why)
        self.sent += len(data)
        self.confirmed, self.pushed, self.timer = self.received, 0, 0

    def arrive(self, data: bytes, ack: int, why: str, tsval: int, start: int) -> None:
        if start <= self.confirmed <= start + len(data):
            self.echo = tsval
        if ack > self.acked:
            self.acked = ack
            self.push(why)
        if not data:
            return
        self.received += len(data)
        self.inbox += data
        self.pushed += len(data) < MSS
        small_first = self.received - self.confirmed <= MSS
        if self.host.quickack or not small_first or (self.quick > 0 and not self.pingpong):
            self.quick -= 1
            self.net.after(0.004, lambda: self.acknowledge("now"))
        elif not self.timer:
            due = self.net.now + round(self.host.delack_ms * MS)
            tick = round(self.host.tick_ms * MS)
            due = due + (self.phase - due) % tick + self.net.rng.randrange(60_000)
            self.timer = due
            self.net.at(due, lambda: self.timeout(due))
        self.last_data = self.net.now
        self.net.after(0.02 + self.busy(), self.read)

    def timeout(self, due: int) -> None:
        if self.timer == due and self.received > self.confirmed:
            self.pingpong = False
            self.acknowledge("timer")

    def acknowledge(self, why: str) -> None:
        if self.received > self.confirmed:
            self.transmit(b"", why)

    def read(self) -> None:
        if self.pushed >= 2 or (self.pushed and not self.pingpong):
            self.acknowledge("now")
        self.reader()

    def busy(self) -> float:
        return self.net.rng.expovariate(1 / self.host.busy_ms) if self.host.busy_ms else 0.0


class Net:
    """One connection from its handshake to its end, on a tape as the tap sees it."""

    def __init__(
        self, script: Script, hosts: tuple[Host, Host], path: Path, rng: random.Random, ends: Ends,
        phases: tuple[float, float],
    ):  # fmt: skip
        self.script, self.path, self.rng, self.ends = script, path, rng, ends
        self.now = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.count = 0
        self.last: dict[tuple[bool, int], int] = {}
        self.free: dict[tuple[bool, int], int] = {}
        self.tape: list[Segment] = []
        self.truth = [Truth() for _ in range(script.exchanges)]
        self.client, self.server = (Socket(self, i == 0, hosts[i], phases[i]) for i in (0, 1))
        self.client.peer, self.server.peer = self.server, self.client
        self.isn = {True: rng.randrange(2**32), False: rng.randrange(2**32)}
        self.starts = [0]
        for number in range(script.exchanges - 1):
            self.starts.append(self.starts[-1] + sum(len(data) for _, data in script.at(number).request))
        self.asked = self.served = self.answered = 0
        self.serving = False
        self.client.reader, self.server.reader = self.client_reads, self.server_reads

    def at(self, when: int, call: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (max(when, self.now), self.count, call))

    def after(self, ms: float, call: Callable[[], None]) -> None:
        self.at(self.now + round(ms * MS), call)

    def leg(self, from_client: bool, half: int, ms: float, data: bytes) -> int:
        """When a packet gets over this half of the path: it never overtakes the one before it."""
        scale = 1.0 if from_client else self.path.asymmetry
        extra = self.path.extra(self.rng) if ms > 0.05 else 0.0
        free = max(self.now, self.free.get((from_client, half), 0)) + round(self.path.takes(ms, data) * MS)
        self.free[from_client, half] = free
        due = free + round((ms * scale + extra) * MS)
        due = max(due, self.last.get((from_client, half), 0) + 700)
        self.last[from_client, half] = due
        return due

    def send(self, socket: Socket, data: bytes, flags: str, why: str) -> None:
        ack, start, tsval, echo = socket.received, socket.sent, socket.tsval(), socket.echo
        socket.ip_id += 1
        number, first, second = socket.ip_id, self.path.client_ms, self.path.server_ms
        if not socket.client:
            first, second = second, first

        def tap() -> None:
            if socket.client and data:
                self.note_request(start, start + len(data))
            self.record(socket.client, flags, start, ack, data, tsval, echo, number)
            due = self.leg(socket.client, 2, second, data)
            self.at(due, lambda: socket.peer.arrive(data, ack, why, tsval, start))

        self.at(self.leg(socket.client, 1, first, data), tap)

    def note_request(self, start: int, end: int) -> None:
        """Which exchanges' first bytes are these?"""
        for truth, first in zip(self.truth, self.starts, strict=True):
            if start <= first < end and not truth.asked_ns:
                truth.asked_ns = EPOCH_NS + self.now

    def record(
        self, client: bool, flags: str, seq: int, ack: int, data: bytes, tsval: int, echo: int, number: int
    ) -> None:
        options = [timestamps(tsval, echo)] if self.script.stamped else []
        syn = "S" in flags
        if syn:
            options += [mss(), SACK_PERMITTED, wscale(7)]
        self.tape.append(
            Segment(
                client, flags, self.isn[client] + (0 if syn else 1 + seq),
                self.isn[not client] + 1 + ack if "A" in flags else 0, data, EPOCH_NS + self.now,
                options=tuple(options), ip_id=number % 2**16, ends=self.ends,
            )
        )  # fmt: skip

    def freed(self, socket: Socket, waited_ms: float) -> None:
        """A small segment left because the peer's timer acknowledged the one before it."""
        number = min(self.answered, len(self.truth) - 1)
        last = min(self.asked, len(self.truth)) if self.script.pipelined > 1 else number + 1
        for truth in self.truth[number : max(last, number + 1)]:
            truth.waits.append(("client" if socket.client else "server", waited_ms))
            truth.stalled |= waited_ms >= 1

    def run(self, start_ms: float = 0.0) -> None:
        self.now = round(start_ms * MS)
        self.handshake()
        while self.events:
            self.now, _, call = heapq.heappop(self.events)
            call()

    def handshake(self) -> None:
        path, c, s = self.path, self.client, self.server
        there = [ms + path.takes(ms, b"") for ms in (path.client_ms, path.server_ms)]
        back = [ms * path.asymmetry + path.takes(ms, b"") for ms in (path.client_ms, path.server_ms)]
        steps = [(True, "S", c, there[0]), (False, "SA", s, there[1] + back[1]), (True, "A", c, there[0] + back[0])]
        for client, flags, end, ms in steps:
            self.now += round((ms + 0.015) * MS)
            end.ip_id += client
            number = end.ip_id if client else 0  # as Linux has it: a connection to be has no counter yet
            sent = round((there[0] if client else back[1]) * MS)
            tsval = end.tsval(self.now - sent)
            self.record(client, flags, 0, 0, b"", tsval, end.peer.tsval() if "A" in flags else 0, number)
        self.client.echo, self.server.echo = self.server.tsval(), self.client.tsval()
        self.after(1.0 + 4 * path.client_ms, self.ask)

    # the programs

    def ask(self) -> None:
        batch = min(self.script.pipelined, self.script.exchanges - self.asked)
        writes = [w for k in range(batch) for w in self.script.at(self.asked + k).request]
        self.asked += batch
        self.play(self.client, writes)

    def play(self, socket: Socket, writes: list[tuple[float, bytes]]) -> None:
        if not writes:
            return
        (pause, data), rest = writes[0], writes[1:]

        def now() -> None:
            socket.write(data)
            self.play(socket, rest)

        if pause:
            self.after(pause + 0.01 * self.rng.random(), now)
        else:
            now()

    def server_reads(self) -> None:
        if self.serving or self.served >= self.script.exchanges:
            return
        script = self.script.at(self.served)
        wanted = b"".join(data for _, data in script.request)
        if len(self.server.inbox) < len(wanted):
            return
        self.server.inbox = self.server.inbox[len(wanted) :]
        self.serving = True
        self.after(self.rng.uniform(*script.server_think), lambda: self.reply(script))

    def reply(self, script: Script) -> None:
        self.play(self.server, list(script.answer))
        pause = sum(p + 0.02 for p, _ in script.answer if p)

        def done() -> None:
            self.serving = False
            self.served += 1
            self.server_reads()

        self.after(pause + 0.001, done)

    def client_reads(self) -> None:
        while self.answered < self.asked:
            wanted = sum(len(data) for _, data in self.script.at(self.answered).answer)
            if len(self.client.inbox) < wanted:
                return
            self.client.inbox = self.client.inbox[wanted:]
            self.answered += 1
            if self.answered == self.asked and self.asked < self.script.exchanges:
                self.after(self.rng.uniform(*self.script.client_think), self.ask)


@dataclass(frozen=True)
class Recording:
    """What the tap saw, in order of time, and the truth by client port and number of the exchange."""

    tape: list[Segment]
    truth: dict[tuple[int, int], Truth]


def record(
    script: Script, client: Host = PLAIN, server: Host = PLAIN, path: Path = NEAR, *,
    connections: int = 3, seed: int = 1, ends: Ends = ENDS,
) -> Recording:  # fmt: skip
    """Several connections one beside the other; the same seed gives the same bytes."""
    tape: list[Segment] = []
    truth = {}
    ticks = random.Random(seed)
    phases = ticks.random(), ticks.random()
    for number in range(connections):
        (address, port), there = ends.client, ends.server
        mine = Ends((address, port + number), there)
        net = Net(script, (client, server), path, random.Random(seed * 1000 + number), mine, phases)
        net.run(start_ms=number * 3.7)
        tape += net.tape
        truth |= {(port + number, i): t for i, t in enumerate(net.truth)}
    tape.sort(key=lambda s: s.time_ns)
    return Recording(tape, truth)
