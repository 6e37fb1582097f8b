"""Captures that cannot say all: copies, holes, clocks, damage, one direction."""

from __future__ import annotations

import random
from dataclasses import replace

from makepcap import Ends, Talk, answer, get, pcap
from rawip import file, packet
from simulator import Host, Path, Script, record

from spoken.registry import ASK, in_time, on_its_own, says, talked


def times(copies: int, share: float = 1.0) -> bytes:
    """Nodelay answers; so many copies of each packet, or of this share of them, 10 us apart."""
    script = Script(ASK, ((0.0, b"".join(answer(300))),), exchanges=8)
    tape = record(script, server=Host(nodelay=True)).tape
    rng = random.Random(2)
    more = [replace(s, time_ns=s.time_ns + 10_000 * n) for s in tape if rng.random() < share for n in range(1, copies)]
    return in_time([*tape, *more])


@says("of 48 data segments 96 copies are in the capture (two points at once, or a mirror port): capture")
def every_packet_three_times() -> bytes:
    return times(3)


@says(" data segments are in the capture twice: doubled on the path, or by a mirror port")
def some_packets_twice() -> bytes:
    return times(2, 0.3)


@says(
    "  capture   packets, or their ends, are missing from the capture in its one exchange: it is not judged by "
    "what is left"
)
def a_hole_in_the_one_answer() -> bytes:
    talk = Talk()
    talk.open()
    talk.client(10.0, get())
    head, body = answer(4000)
    parts = [(head + body)[i : i + 1460] for i in range(0, len(head + body), 1460)]
    talk.server(11.0, parts[0])
    talk.server(11.1, parts[2], seq=2921)
    talk.client(12.0, ack=talk.s.sent)
    return pcap(talk.tape)


@says(
    "  capture   packets, or their ends, are missing from the capture in 1 of 5 exchanges: it is not judged by "
    "what is left"
)
def a_hole_in_one_answer() -> bytes:
    talk = Talk()
    talk.open()
    head, body = answer(4000)
    parts = [(head + body)[i : i + 1460] for i in range(0, len(head + body), 1460)]
    for number in range(5):
        at = 10.0 + 100.0 * number
        talk.client(at, get())
        start = talk.s.sent
        for place, part in enumerate(parts):
            if (number, place) != (4, 1):
                talk.server(at + 1.0 + place / 10, part, seq=start + 1460 * place)
        talk.client(at + 3.0, ack=talk.s.sent)
    return pcap(talk.tape)


def steps(ms: int, at: tuple[float, ...]) -> bytes:
    """Nodelay answers; the capture's clock is set by so many ms at these parts of the tape."""
    script = Script(ASK, ((0.0, b"".join(answer(300))),), exchanges=20, server_think=(30.0, 31.0))
    tape = record(script, server=Host(nodelay=True), path=Path(2.0, 2.0)).tape
    moved = [
        replace(s, time_ns=s.time_ns + ms * 1_000_000 * sum(n >= part * len(tape) for part in at))
        for n, s in enumerate(tape)
    ]
    return pcap(moved)


@says("the capture's clock jumped ahead (by up to 10 s): the hosts' own time stamps did not")
def a_clock_that_jumps_twice() -> bytes:
    return steps(10_000, (0.35, 0.8))


@says("  capture   time stamps go back 2 times: short times are not to be trusted")
def a_clock_that_goes_back_twice() -> bytes:
    return steps(-500, (0.3, 0.6))


@says("  damaged   ", "record data is cut")
def a_file_that_is_cut() -> bytes:
    return pcap(talked(80, [1.0, 1.0]).tape)[:-20]


@says("  skipped   1 frame of 1: payload is encrypted (50)")
def what_is_encrypted() -> bytes:
    return file(packet(1, 9, 50, bytes(40)))


@says("  suspected 10.0.0.2:80: the client held ")
def one_direction_beside_requests() -> bytes:
    both = Script(ASK, tuple((0.0, part) for part in answer(400)), exchanges=16)
    tape = [s for s in record(both, path=Path(0.01, 1.5)).tape if s.from_client]
    on_its_own(tape, host="10.0.0.3")
    return in_time(tape)


@says("; 1 of them not answered to the end: what was seen of it")
def an_answer_that_is_cut() -> bytes:
    talk = talked(80, [1.0, 1.0])
    talk.client(500.0, get("/big"))
    head, body = answer(4000)
    talk.server(501.0, (head + body)[:1460])
    talk.client(502.0)
    start = talk.s.sent
    for wait in (0.0, 300.0, 900.0, 2100.0):
        talk.server(502.1 + wait, (head + body)[1460:2920], seq=start)
    talk.client(2603.2)
    talk.server(2603.3, (head + body)[2920:3500])
    talk.client(2604.3)
    return pcap(talk.tape)


MONTHS = 100 * 86_400_000.0


def twice(idle_ms: float, streams: int) -> bytes:
    """Five requests, and so much later five more: on as many connections."""
    talk = Talk()
    talk.open()
    for number in range(10):
        if number == 5 and streams == 2:
            talk = Talk(ends=Ends(("10.0.0.1", 50_000)), tape=talk.tape)
            talk.open(idle_ms + 250.0)
        at = 10.0 + 50.0 * number + (idle_ms if number > 4 else 0.0)
        talk.client(at, get())
        talk.server(at + 4.0, b"".join(answer(300)))
        talk.client(at + 5.0)
    return pcap(talk.tape)


@says(
    "recordings of 2 times, up to 100 days apart, are in this file: an address need not be one host", "probable (0.85)"
)
def two_recordings_in_one_file() -> bytes:
    return twice(MONTHS, 2)


@says("sure?     proven (0.90)")
def a_connection_that_is_idle_for_months() -> bytes:
    return twice(MONTHS, 1)
