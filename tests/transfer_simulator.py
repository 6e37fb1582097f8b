"""One transfer between two hosts, captured at both: a model of TCP's windows, a line with a queue, and two programs.

    captures = Transfer(bytes=2_000_000, rtt=40, window=65_535).captures()     # {"sender": pcap, "receiver": pcap}

It models what limits a transfer and no more: slow start, a halved window behind a loss, SACK, delayed ACKs, time
stamps of 1 ms. Times in ms, rates in Mbit/s.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from makepcap import EPOCH_NS, SACK_PERMITTED, Segment, mss, pcap, sack, timestamps, wscale

SIZE, FIRST = 1448, 10
SHIFT = 7


@dataclass
class Transfer:
    """What moves, and what may hold it back. The client sends unless `download`."""

    bytes: int = 2_000_000
    rtt: float = 30.0
    opening_rtt: float | None = None
    """The round trip of the handshake, if it was another one."""
    download: bool = True
    line: float | None = None
    """Rate of the line before the receiver; None: segments follow each other within 2 us."""
    window: int = 4_000_000
    scaled: bool = True
    reader: float | None = None
    """Rate at which the receiving program reads, 32 kB at a time."""
    writes: tuple[int, float] | None = None
    """The sending program writes so many bytes, each so many ms."""
    buffer: int | None = None
    pace: float | None = None
    lost: tuple[int, ...] = ()
    """Segments that are lost once, by their number."""
    late: tuple[int, ...] = ()
    """Segments that come `late_ms` late."""
    late_ms: float = 2.0
    counted: bool = False
    """The sender counts its packets in the IPv4 identification."""
    ceiling: int = 10_000
    """The most segments of the congestion window."""
    stamped: bool = True

    def captures(self) -> dict[str, bytes]:
        """Runs it; the capture at each end."""
        self.tapes: dict[str, list[Segment]] = {"sender": [], "receiver": []}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count, self.now = 0, 0.0
        self.next = self.acked = self.edge = 0
        self.cwnd, self.threshold = float(FIRST), 1e9
        self.recover, self.repeats, self.written = 0, 0, 0 if self.writes else self.bytes
        self.got: set[int] = set()
        self.expected, self.read, self.waiting, self.held = 0, 0.0, 0, False
        self.free_at, self.left_at, self.paced_at = 0.0, 0.0, 0.0
        self.number, self.echo, self.heard, self.sent = 0, 0, 0, 0
        self.sizes: dict[int, int] = {}
        self._open()
        if self.writes:
            self._write()
        if self.reader:
            self._read()
        self._send()
        while self._events and self.acked < self.bytes:
            self.now, _, then = heapq.heappop(self._events)
            then()
        return {end: pcap(sorted(tape, key=lambda one: one.time_ns)) for end, tape in self.tapes.items()}

    def _at(self, when: float, then: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, then))

    def _tape(self, end: str, when: float, data: bool, flags: str, seq: int, ack: int, **more: object) -> None:
        from_client = data != self.download
        options = list(more.pop("options", ()))  # type: ignore[call-overload]
        if self.stamped:
            echo = more.pop("echo", 0)
            options.append(timestamps(int(more.pop("stamp", when)) + 1000, int(echo) + 1000))  # type: ignore[call-overload]
        else:
            more.pop("echo", 0), more.pop("stamp", 0)
        time_ns = EPOCH_NS + int(when * 1e6)
        made = Segment(from_client, flags, seq, ack, time_ns=time_ns, options=tuple(options), **more)  # type: ignore[arg-type]
        self.tapes[end].append(made)

    def _open(self) -> None:
        opening = self.opening_rtt or self.rtt
        half, options = opening / 2, [mss(SIZE + 12), SACK_PERMITTED, *([wscale(SHIFT)] if self.scaled else [])]
        turns = (
            (not self.download, "S", -opening - half),
            (self.download, "SA", -opening),
            (not self.download, "A", -half),
        )
        for data, flags, sent in turns:
            left, comes = ("sender", "receiver") if data else ("receiver", "sender")
            for end, when in ((left, sent), (comes, sent + half)):
                seq = 0 if "S" in flags else 1
                ack = 0 if flags == "S" else 1
                window = 65_535 if "S" in flags else self._offer(self.window)
                more = {"options": options} if "S" in flags else {}
                self._tape(end, when + 1.6 * self.rtt, data, flags, seq, ack, window=window, stamp=1, echo=1, **more)
        self.now = 1.6 * self.rtt
        self.edge = self._offer(self.window) << (SHIFT if self.scaled else 0)

    def _offer(self, room: float) -> int:
        return min(65_535, int(room) >> SHIFT) if self.scaled else min(65_535, int(room))

    # the sender

    def _write(self) -> None:
        assert self.writes
        self.written = min(self.bytes, self.written + self.writes[0])
        if self.written < self.bytes:
            self._at(self.now + self.writes[1], self._write)
        self._send()

    def _send(self) -> None:
        while self.next < self.written:
            size = min(SIZE, self.written - self.next)
            flight = self.next - self.acked
            most = min(self.cwnd * SIZE, self.buffer or 1e12)
            if flight + size > most or self.next + size > self.edge:
                return
            if self.pace and self.now < self.paced_at:
                return
            if self.pace and self.number % 2 == 1:
                self.paced_at = self.now + 2 * SIZE * 8 / self.pace / 1e3
                self._at(self.paced_at, self._send)
            self._put(self.next, size)
            self.next += size

    def _put(self, seq: int, size: int, again: bool = False) -> None:
        ends = seq + size >= self.written
        stamp, echo = int(self.now), self.heard
        self.left_at = max(self.left_at + 0.002, self.now)
        self.sent += 1
        packet = {"payload": bytes(size), "echo": echo, "ip_id": self.sent % 65_536 if self.counted else 0}
        self._tape("sender", self.left_at, True, "PA" if ends else "A", seq + 1, 1, **packet)
        self.number += not again
        if not again and self.number in self.lost:
            return
        each = size * 8 / self.line / 1e3 if self.line else 0.002
        self.free_at = max(self.free_at, self.left_at) + each
        when = self.free_at + self.rtt / 2 + (self.late_ms if self.number in self.late else 0.0)

        def comes() -> None:
            flags = "PA" if ends else "A"
            self._tape("receiver", self.now, True, flags, seq + 1, 1, stamp=stamp, **packet)
            self._receive(seq, size, stamp)

        self._at(when, comes)

    def _acked(self, ack: int, edge: int, blocks: list[tuple[int, int]], stamp: int) -> None:
        self.edge, self.heard = max(self.edge, edge), stamp
        if ack > self.acked:
            grown = (ack - self.acked) / SIZE
            self.cwnd = min(self.ceiling, self.cwnd + (grown if self.cwnd < self.threshold else grown / self.cwnd))
            self.acked, self.repeats = ack, 0
            if self.recover and ack < self.recover and blocks:
                self._put(ack, SIZE, again=True)
            elif ack >= self.recover:
                self.recover = 0
        elif blocks:
            self.repeats += 1
            if self.repeats == 3 and not self.recover and self.lost:
                self.threshold = self.cwnd = max(2.0, self.cwnd / 2)
                self.recover = self.next
                self._put(self.acked, SIZE, again=True)
        self._send()

    # the receiver

    def _receive(self, seq: int, size: int, stamp: int) -> None:
        hole = seq != self.expected
        self.got.add(seq)
        self.sizes[seq] = size
        filled = False
        while self.expected in self.got:
            filled = self.expected != seq
            self.got.discard(self.expected)
            self.expected += self.sizes.pop(self.expected)
        self.echo = stamp
        self.waiting += 1
        if hole or filled or self.got or self.waiting >= 2:
            self._ack()
        elif not self.held:
            self.held = True
            self._at(self.now + 40, self._late_ack)

    def _late_ack(self) -> None:
        self.held = False
        if self.waiting:
            self._ack()

    def _read(self) -> None:
        assert self.reader
        took = min(32_768, self.expected - self.read)
        self.read += took
        if took and self.window - (self.expected - self.read) > SIZE:
            self._ack()
        self._at(self.now + max(took, 8_192) * 8 / self.reader / 1e3, self._read)

    def _ack(self) -> None:
        self.waiting = 0
        kept = self.expected - self.read if self.reader else 0
        room = self._offer(max(0, self.window - kept))
        ack, stamp = self.expected, int(self.now)
        spans: list[tuple[int, int]] = []
        for seq in sorted(self.got):
            end = seq + self.sizes[seq]
            if spans and spans[-1][1] == seq:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((seq, end))
        options = [sack(*((left + 1, right + 1) for left, right in spans[-3:]))] if spans else []
        more = {"window": room, "options": options, "echo": self.echo, "stamp": stamp}
        self._tape("receiver", self.now, False, "A", 1, ack + 1, **more)
        edge = ack + (room << (SHIFT if self.scaled else 0))

        def comes() -> None:
            self._tape("sender", self.now, False, "A", 1, ack + 1, **dict(more))
            self._acked(ack, edge, spans, stamp)

        self._at(self.now + self.rtt / 2, comes)
