"""Clients that pause between their requests, and writes that a cork holds until the kernel's timer."""

from __future__ import annotations

import math
import random

from makepcap import Talk, answer, get, pcap

from case_scripts.registry import AT_CLIENT, AT_SERVER, BETWEEN, variants

HTTP = b"".join(answer(200))
NEAR = (1.0, 0.01)


def late(ms: float) -> float:
    """The first tick of 4 ms after it, and what a kernel takes from there."""
    return math.ceil(ms / 4.0) * 4.0 + 0.02


def each(pauses: list[tuple[float, ...]]) -> list[float]:
    """The pauses of (times, ms, ms...) one after the other."""
    return [ms for times, *some in pauses for ms in some * int(times)]


def asking(pauses: list[float], legs: tuple[float, float] = NEAR, ticking: bool = False) -> bytes:
    """Requests that are answered in 2 ms, and the client's pauses after each; ticking: until its kernel's next tick."""
    talk = Talk(server_leg=legs[0], client_leg=legs[1])
    talk.open()
    at = 2.0 + sum(legs)
    for pause in [*pauses, 0.0]:
        talk.client(at, get())
        talk.server(at + talk.server_leg + 2.0, HTTP)
        read = at + talk.server_leg + 2.0 + talk.client_leg
        talk.client(read)
        at = late(read + pause) if ticking else read + pause
    return pcap(talk.tape)


@variants(at_client=AT_CLIENT, at_server=AT_SERVER, between=BETWEEN)
def client_pauses(legs: tuple[float, float]) -> bytes:
    """The client waits 40 ms after each answer before it asks again, six times: rows of their own, told to the
    millisecond wherever the capture is, and no part of a latency.

    Not to be mistaken for: delayed ACKs; every answer is acknowledged at once.
    """
    return asking([40.0] * 6, legs)


@variants(
    one_of_30ms={"pauses": [(1, 0.5, 30.0, 0.5)]},
    one_of_250ms={"pauses": [(1, 0.5, 250.0, 0.5)]},
    two_of_30ms_and_40ms={"pauses": [(1, 0.5, 30.0, 0.5), (1, 0.5, 40.0, 0.5)]},
)
def single_pause(pauses: list[tuple[float, ...]]) -> bytes:
    """The client asks again after 0.5 ms, but for one or two pauses. One short pause may be a busy host's: it has no
    row. A long one has, and so have two.

    Not to be mistaken for: a client that pauses between all its requests.
    """
    return asking(each(pauses))


@variants(short={"pauses": [(6, 19.0)]}, rare={"pauses": [(40, 0.5), (2, 25.0)]})
def no_pause(pauses: list[tuple[float, ...]]) -> bytes:
    """Pauses shorter than 20 ms, or two in 42, over a path of 10 ms: none has a row.

    Not to be mistaken for: a client that keeps the server waiting.
    """
    return asking(each(pauses), (10.0, 0.01))


@variants(at_client=AT_CLIENT, at_server=AT_SERVER, between=BETWEEN)
def corked_client(legs: tuple[float, float]) -> bytes:
    """Each of the client's requests waits 200 ms and until the client's next tick (TCP_CORK): the kernel's timer sends
    it, wherever the capture is.

    Not to be mistaken for: a program that sleeps (sleeping_client).
    """
    rng = random.Random(3)
    return asking([200.0 + rng.uniform(0.1, 3.0) for _ in range(12)], legs, ticking=True)


@variants(
    of_204ms={"pauses": [(20, 204.0)]},
    too_few={"pauses": [(7, 200.0)], "ticking": True},
    others_sooner={"pauses": [(12, 200.0, 30.0)], "ticking": True},
    beyond_the_timer={"pauses": [(20, 220.0)], "ticking": True},
)
def sleeping_client(pauses: list[tuple[float, ...]], ticking: bool = False) -> bytes:
    """Pauses about as long as the timer of a corked socket: off the tick, too few, beside shorter ones, or longer than
    the timer.

    Not to be mistaken for: TCP_CORK (corked_client).
    """
    rng = random.Random(5)
    return asking([p + rng.uniform(0, 3.9) * (not ticking) for p in each(pauses)], NEAR, ticking)


@variants(near={"path": 5.0, "timer": 200.3}, far={"path": 15.0, "timer": 215.3})
def corked_answers(path: float, timer: float) -> bytes:
    """Each of the server's answers leaves on its first tick of 4 ms 200 ms and a round trip after the request: the
    kernel's timer for corked sockets, which is its retransmission timeout.

    Not to be mistaken for: a server that works for 200 ms.
    """
    talk = Talk(server_leg=0.01, client_leg=path)
    talk.open()
    at = 8.0
    for _ in range(12):
        talk.client(at, get())
        done = late(at + timer)
        talk.server(done, HTTP)
        talk.client(done + talk.client_leg)
        at = done + talk.client_leg + 1.3
    return pcap(talk.tape)
