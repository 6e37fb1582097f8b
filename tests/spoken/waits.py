"""Waits and transfers that do not lead: something else cost more."""

from __future__ import annotations

import io

import dpkt
from makepcap import EPOCH_NS, Talk, answer, get, pcap
from test_waits import Tape, late_neighbour, lost_pair
from transfer_simulator import Transfer

from spoken.registry import SPOKEN, Spoken, says


def _names_and_neighbours() -> Tape:
    tape = Tape()
    lost_pair(tape)
    late_neighbour(tape)
    return tape


@says("  waited    ARP: 10.0.0.2 did not answer who has its address: 10.0.0.1 asked 3 times")
def a_late_neighbour_beside_lost_names() -> bytes:
    return _names_and_neighbours().bytes()


@says("  transfer  10.0.0.4:80: a download of 2 MB at 16.7 Mbit/s", "allows no more at 30.0 ms of round trip")
def a_small_window_beside_lost_names() -> bytes:
    tape = Tape()
    lost_pair(tape)
    for seconds, frame in dpkt.pcap.Reader(io.BytesIO(Transfer(window=65_536).captures()["receiver"])):
        since = (float(seconds) - EPOCH_NS / 1e9) * 1000
        tape.frames.append((since, bytes(frame).replace(b"\x0a\0\0\2", b"\x0a\0\0\4")))
    return tape.bytes()


def idle(seconds: float, *earlier: float) -> bytes:
    """A request after each of these idle times in seconds; the one after the last meets a RST."""
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    at = 20.0
    for pause in (*earlier, seconds):
        talk.client(at, get("/a"))
        talk.server(at + 10.0, b"".join(answer(40)))
        talk.client(at + 10.1)
        at += 10.1 + 1000.0 * pause
    talk.client(at, get("/again"))
    talk.server(at + 8.1, flags="R")
    return pcap(talk.tape)


TIMERS = {
    10: "a keep-alive time-out of 10 s",
    15: "a keep-alive time-out of 15 s",
    60: "an AWS ALB, HAProxy or proxy time-out of 60 s",
    65: "nginx's keepalive_timeout as shipped by some",
    75: "nginx's keepalive_timeout",
    120: "IIS, Go programs",
    240: "Azure's load balancer and NAT",
    300: "a firewall's or proxy's 5 min",
    900: "a firewall's 15 min",
    1800: "a firewall's 30 min",
    3600: "a firewall's hour",
    7200: "the kernel's tcp_keepalive_time",
    28800: "MySQL's wait_timeout",
    432000: "conntrack's 5 days",
}
for seconds, whose in TIMERS.items():
    SPOKEN[f"idle for {seconds} s"] = Spoken(
        lambda seconds=seconds: idle(1.01 * seconds),  # type: ignore[misc]
        (f"that is like {whose}",),
    )


@says("more than 100.00 s and ", "that is like AWS NLB")
def idle_for_longer_than_before() -> bytes:
    return idle(353.0, 100.0)


def events(*times: float) -> bytes:
    """A stream of events whose head leaves with the first of them, at these times behind its request in ms."""
    talk = Talk(server_leg=8.0, client_leg=0.01)
    talk.open()
    talk.client(20.0, get("/events"))
    talk.server(28.1)
    for n, at in enumerate(times):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        talk.server(20.0 + at, (b"" if n else head) + b"9\r\ndata: a\n\n\r\n")
        talk.client(20.1 + at)
    return pcap(talk.tape)


@says("its one request is a stream of events, which began with the first thing to report")
def events_at_a_rhythm() -> bytes:
    return events(5000.0, 10000.0, 15000.0, 20000.0)


@says("its one request, a stream of events, began to be answered after 9.00 ms")
def events_after_an_answer() -> bytes:
    return events(9.0, 5009.0, 10009.0)
