"""Who types or sends commands without waiting for answers, and what Nagle's algorithm makes of that.

No reader knows these protocols.
"""

from __future__ import annotations

import heapq
import random

from makepcap import Talk, answer, get, pcap

from case_scripts.registry import case, variants

KEYS = 40


def echoing(legs: tuple[float, float], every: float, nagle: tuple[bool, bool], program: float = 0.1) -> bytes:
    """A client that writes a byte every so many ms, and a server that echoes it `program` ms later; whose kernel holds
    small segments. Seen on the path with these round trips to the server and to the client.
    """
    talk = Talk(server_leg=legs[0], client_leg=legs[1])
    talk.open()
    way = sum(legs) / 2
    waiting, acked, sent = [b"", b""], [1, 1], [1, 1]
    came, told = [1, 1], [1, 1]  # what each side has of the other's, and has acknowledged
    todo = [(10.0 + every * n, n, "write", 0, 1) for n in range(KEYS)]
    count = KEYS

    def later(ms: float, what: str, side: int, value: int) -> None:
        nonlocal count
        count += 1
        heapq.heappush(todo, (ms, count, what, side, value))

    def passes(ms: float, side: int, data: bytes) -> None:
        seen = ms + legs[1 if side == 0 else 0] / 2
        (talk.client if side == 0 else talk.server)(seen, data, ack=came[side])
        told[side] = came[side]
        later(ms + way, "came", 1 - side, sent[side])
        later(ms + way, "acked", 1 - side, came[side])

    def push(ms: float, side: int) -> None:
        if waiting[side] and not (nagle[side] and acked[side] < sent[side]):
            data, waiting[side] = waiting[side], b""
            sent[side] += len(data)
            passes(ms + 0.015, side, data)

    while todo:
        ms, _, what, side, value = heapq.heappop(todo)
        if what == "write":
            waiting[side] += b"x" * value
            push(ms, side)
        elif what == "acked":
            acked[side] = max(acked[side], value)
            push(ms, side)
        elif what == "delayed":
            if told[side] < value:
                passes(ms, side, b"")
        elif value > came[side]:
            new, came[side] = value - came[side], value
            if side == 1:
                later(ms + program, "write", 1, new)
            quick = value - new == 1  # the first data of a connection are acknowledged at once
            later(ms + (0.01 if quick else 40.0), "delayed", side, value)
    return pcap(sorted(talk.tape, key=lambda segment: segment.time_ns))


@case
def keys_held_by_the_server() -> bytes:
    """A key every 20 ms over a path of 60 ms, TCP_NODELAY at the client only: the server's echo waits in its kernel
    until the echo before is acknowledged, with a later key. The capture is beside the server.

    Not to be mistaken for: a person's pauses between the keys.
    """
    return echoing((0.02, 60.0), 20.0, (False, True))


@case
def keys_held_by_the_client() -> bytes:
    """A key every 35 ms over a path of 60 ms, Nagle's algorithm at both ends: keys wait in the client's kernel for the
    echo that acknowledges the ones before. Beside the client this is suspected at best.

    Not to be mistaken for: a person who types on as soon as the echo is there.
    """
    return echoing((60.0, 0.02), 35.0, (True, True))


@variants(
    at_once={"after": 0.03, "parts": 0},
    later={"after": 0.09, "parts": 1},
    in_parts={"after": 0.03, "parts": 20},
)
def decoy_takes_turns(after: float, parts: int) -> bytes:
    """The client asks again so many ms after each answer; some of its requests it writes in two parts. Nagle's
    algorithm is on, but has nothing to hold when an answer comes. No reader knows the protocol; 60 ms to the server.

    Not to be mistaken for: a client whose requests wait in its kernel (keys_held_by_the_client).
    """
    talk = Talk(server_leg=60.0, client_leg=0.02)
    talk.open()
    at = 70.0
    for n in range(20):
        talk.client(at, b"ask 1 of\n")
        if n < parts:
            talk.server(at + 60.0)
            at += 60.02
            talk.client(at, b"two\n")
        talk.server(at + 60.3, b"told\n")
        at += 60.3 + after
    return pcap(talk.tape)


@case
def decoy_commands_in_two_parts() -> bytes:
    """The client writes each command in two parts, 30 ms apart, with TCP_NODELAY; the server's program answers 0.04 ms
    after the second, which brings the ACK of its answer before. Its first answer it wrote in two parts. No reader knows
    the protocol; the capture is beside the server.

    Not to be mistaken for: answers that wait in the server's kernel for that ACK (keys_held_by_the_server).
    """
    talk = Talk(server_leg=0.02, client_leg=4.0)
    talk.open()
    at, told = 10.0, 1
    for n in range(20):
        talk.client(at, b"put 7\n", ack=told)
        talk.client(at + 30.0, b"1234567\n")
        talk.server(at + 30.04, b"stored\n")
        if n == 0:
            talk.client(at + 74.0)
            talk.server(at + 74.03, b"and kept\n")
            at += 74.0
        told = talk.s.sent - (9 if n == 0 else 7)
        at += 90.0
    return pcap(talk.tape)


def _after_work(
    works: list[float], free: float = 0.02, prompt: int = 1, server: float = 0.01, client: float = 1.0
) -> bytes:
    """Head and body, the program at work between them for so many ms; all ACKs but the first `prompt` are held, and so
    long after them (and the path to the server) the kernel sends what it held."""
    talk, rng = Talk(server_leg=server, client_leg=client), random.Random(11)
    talk.open()
    head, body = answer(600)
    at = 5.0
    for n, work in enumerate(works):
        talk.client(at, get())
        began = at + server + 0.19
        talk.server(began, head)
        acked = began + client + (0.0 if n < prompt else rng.uniform(40.0, 44.0))
        talk.client(acked)
        done = max(began + work, acked + server - 0.01 + free)
        talk.server(done, body)
        talk.client(done + client)
        at = done + client + 2.0
    return pcap(talk.tape)


@case
def body_after_work() -> bytes:
    """Nagle's algorithm and a delayed ACK of 40 to 44 ms, and a program that works for 20 to 60 ms between head and
    body: where it is done before the ACK, the rest of the wait was its kernel's; where not, all of it was its own. Seen
    beside the server. Which part of a wait was which nobody can tell: the first exchange, with its ACK at once, took
    41 ms.

    Not to be mistaken for: proven stalls.
    """
    rng = random.Random(12)
    return _after_work([41.0, *(rng.uniform(20.0, 60.0) for _ in range(23))])


@variants(at_server={"server": 0.02, "client": 15.0}, at_client={"server": 15.0, "client": 0.02})
def body_after_work_far_away(server: float, client: float) -> bytes:
    """Nagle's algorithm and a delayed ACK of 40 to 44 ms on a path of 15 ms, and a program that works for 20 ms between
    head and body, three times with the head's ACK at once. Of each wait the program's 20 ms come first, whether it is
    seen beside the server or beside the client, where the ACK is held from the head on: the rest was its kernel's.

    Not to be mistaken for: stalls that are proven to begin when the client gets the head.
    """
    return _after_work([20.0] * 24, free=0.01, prompt=3, server=server, client=client)


@case
def body_after_work_that_differs() -> bytes:
    """Nagle's algorithm and a delayed ACK of 40 to 44 ms, and a program that works for 10 to 18 ms between head and
    body; 12 ms in the first exchange, whose ACK came at once. Seen beside the server. What it takes at most one
    exchange cannot show.

    Not to be mistaken for: stalls that are proven from the twelfth millisecond on.
    """
    rng = random.Random(13)
    return _after_work([12.0, *(rng.uniform(10.0, 18.0) for _ in range(23))])


@case
def work_that_outlasts_held_acks() -> bytes:
    """Nagle's algorithm and a delayed ACK of 40 to 44 ms, and a program whose work between head and body differs much:
    7 ms in the first exchange, whose ACK came at once, and up to 52 ms later. Seen beside the server. A sixth of the
    bodies came after their ACKs: so others were written shortly before theirs, and nobody can tell which.

    Not to be mistaken for: stalls that are proven because the first body was written after 7 ms.
    """
    return _after_work([7.0, *([3.0, 31.0, 12.0, 52.0, 5.0, 38.0] * 4)])


@case
def work_that_grows_past_held_acks() -> bytes:
    """Nagle's algorithm and a delayed ACK of 40 to 44 ms, and a program that is slower from exchange to exchange: 2, 4
    and 6 ms where the ACK came at once, then 2 ms more each time, up to 58 ms. Seen beside the server. The last eleven
    bodies came after their ACKs: so those before them were written shortly before theirs.

    Not to be mistaken for: stalls that are proven because the first three bodies were written after 6 ms at most.
    """
    return _after_work([2.0 * n for n in range(1, 30)], prompt=3)


@case
def body_after_rare_work() -> bytes:
    """The same, but all bodies are written at once, apart from two that take 55 ms: the others waited for their ACKs.

    Not to be mistaken for: a program that may have been at work in all of them.
    """
    return _after_work([0.3, *([0.3] * 11 + [55.0]) * 2])


@case
def cache_hits_and_misses() -> bytes:
    """Nagle's algorithm and a delayed ACK of 40 to 44 ms, and a program that writes the body after 55 ms, or in one of
    four exchanges at once. Its host is busy: what the ACK frees leaves 0.4 ms behind it. The waits of 55 ms are the
    program's, as they outlast their ACKs; those that end right behind them were held.

    Not to be mistaken for: pauses of the program that all keep their length.
    """
    return _after_work([55.0, *([55.0, 55.0, 0.3, 55.0] * 6)], free=0.4)


@variants(held={"nodelay": False}, nodelay={"nodelay": True})
def body_fills_a_segment(nodelay: bool) -> bytes:
    """A head, and a body that is written in two parts, 10 and 30 ms later, before the head is acknowledged. Nagle's
    algorithm holds the first part of 900 bytes until the second makes a full segment of it, which goes. With
    TCP_NODELAY a first part of 300 bytes goes at once, and the full segment after 20 ms of the program's. Seen beside
    the server.

    Not to be mistaken for: 30 ms that are proven the program's because only a small segment may be held.
    """
    talk = Talk(server_leg=0.01, client_leg=1.0)
    talk.open()
    head, body = answer(1800)
    for n in range(12):
        at = 5.0 + 60.0 * n
        talk.client(at, get())
        talk.server(at + 0.2, head)
        if nodelay:
            talk.server(at + 10.2, body[:300])
            talk.server(at + 30.2, body[300:1760])
            talk.server(at + 30.21, body[1760:])
        else:
            talk.server(at + 30.2, body[:1460])
        talk.client(at + 41.2)
        if not nodelay:
            talk.server(at + 41.22, body[1460:])
        talk.client(at + 45.0)
    return pcap(talk.tape)
