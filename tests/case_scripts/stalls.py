"""Nagle's algorithm and the delayed ACK, and programs that only look like them."""

from __future__ import annotations

import random
from dataclasses import replace

import situations
from makepcap import Ends, Talk, answer, get, held, pcap
from simulator import ENDS, Host, Path, Script, record

from case_scripts.registry import case, variants


@case
def stall_at_server() -> bytes:
    """The server's Nagle and the client's delayed ACK, seen at the server (leg 0.01 ms; 1 ms to the client).
    The first answer of the connection meets a quick ACK. The 1 ms before the hold is the head's way to the client
    and the ACK's way back: still Nagle's, but nobody's hold.

    Not to be mistaken for: a program that pauses between head and body (pause_decoy).
    """
    return pcap(situations.stall(10)[0].tape)


@case
def stall_at_client() -> bytes:
    """The same stall seen at the client over a path of 20 ms, with TCP timestamps: the body comes 20 ms after its
    ACK, and yet because of it. The hold is the same 40 to 44 ms.

    Not to be mistaken for: a body that left late, for it comes a whole path after the ACK.
    """
    return pcap(situations.stall(10, client_leg=0.01, server_leg=20.0, stamped=True)[0].tape)


@case
def stall_on_one_socket_of_two() -> bytes:
    """Two connections of 40 exchanges begin together. One has TCP_NODELAY and is done when the other, which Nagle's
    algorithm holds up each time, has had two of its own. Seen at the server, 2 ms from the client.

    Not to be mistaken for: an option that changed on the way. Each connection ends as it began.
    """
    script = Script(((0.0, get()),), tuple((0.0, part) for part in answer(400)), exchanges=40, client_think=(0.2, 0.4))
    path, ((address, port), there) = Path(1.0, 0.005), (ENDS.client, ENDS.server)
    waits = record(script, client=Host(quick=0), path=path, connections=1)
    free = record(script, Host(), Host(nodelay=True), path, connections=1, ends=Ends((address, port + 1), there))
    return pcap(sorted(waits.tape + free.tape, key=lambda segment: segment.time_ns))


@case
def stall_ipv6() -> bytes:
    """The stall over IPv6 (no IP identification, other header length), in nanoseconds.

    Not to be mistaken for: a capture with frames missing; there is no identification to count them by.
    """
    return pcap(situations.stall(9, ends=Ends(("2001:db8::1", 40_000), ("2001:db8::2", 80)))[0].tape, nanos=True)


@case
def stall_alone() -> bytes:
    """One stall only: a program that pauses just once for 42 ms looks the same, so the verdict is probable.

    Not to be mistaken for: a proven stall.
    """
    return pcap(situations.stall(2)[0].tape)


@case
def pause_decoy() -> bytes:
    """TCP_NODELAY, and the server's program pauses 42 ms between head and body: the client's delayed ACK falls
    sometimes before and sometimes after the body.

    Not to be mistaken for: Nagle, or a delayed ACK that anybody waits for.
    """
    return pcap(situations.pause(12)[0].tape)


@variants(on={"first": True}, off={"first": False}, toggled={"first": True, "every": 5})
def option_changes(first: bool, every: int = 30) -> bytes:
    """Head and body of sixty answers, seen at the server. Nagle's algorithm holds the body back until the delayed ACK
    of the head; after so many answers TCP_NODELAY is set (or taken back, or by turns), and nothing waits.

    Not to be mistaken for: sockets that differ, or an option that is on now and then.
    """
    talk, rng = Talk(server_leg=0.01, client_leg=2.99), random.Random(17)
    talk.open()
    head, body = answer(600)
    at = 8.0
    for n in range(60):
        waits = (n // every % 2 == 0) == first
        talk.client(at, get())
        told = at + 0.2
        talk.server(told, head)
        acked = told + 2.99 + (rng.uniform(40.0, 44.0) if waits and n else 0.0)
        if waits:
            talk.client(acked)
        done = acked + 0.015 if waits else told + 0.3
        talk.server(done, body)
        talk.client(done + 2.99)
        at = done + 3.5
    return pcap(talk.tape)


@case
def think() -> bytes:
    """The server works 60 ms. Its kernel acknowledges the request after 40 to 44 ms with a pure ACK.

    Not to be mistaken for: a held ACK that somebody waits for.
    """
    return pcap(situations.think(6)[0].tape)


def _pipelined(behind: float) -> bytes:
    """A client that asks every 12 ms, and is one answer behind: each comes so long after the next request."""
    talk = Talk(server_leg=0.01, client_leg=6.0)
    talk.open()
    at, told = 10.0, 1
    whole = b"".join(answer(60))
    talk.client(at, get() + get())
    talk.server(at + 0.2, whole)
    for _ in range(20):
        told += len(whole)
        at += 12.0
        talk.client(at, get(), ack=told)
        talk.server(at + behind, whole)
    return pcap(talk.tape)


@case
def answers_freed_by_the_next_request() -> bytes:
    """The server's program answers at once, but its kernel holds each small answer back until the one before it is
    acknowledged (Nagle's algorithm): by the client's next request, 12 ms later. Seen beside the server.

    Not to be mistaken for: a program that takes 12 ms, proven.
    """
    return _pipelined(0.03)


@case
def decoy_answers_after_the_next_request() -> bytes:
    """The same, but each answer leaves 0.2 ms after the next request: its program wrote it then.

    Not to be mistaken for: answers that wait in the server's kernel (answers_freed_by_the_next_request).
    """
    return _pipelined(0.2)


@variants(
    by_the_kernel={"turn": -1, "us": 3.0},
    decoy_in_its_own_order={"turn": 1, "us": 3.0},
    decoy_write_by_write={"turn": -1, "us": 12.0},
)
def freed_together(turn: int, us: float) -> bytes:
    """Ten connections between two namespaces, seen at the client. The timers of their held ACKs end on one tick, the
    latest first; the kernel sends the ACKs 2 us apart, and 200 us later what they free, in their order (`turn` -1)
    and so many `us` apart. The first answers of all ten were not held.

    Not to be mistaken for: a program that wakes up on that tick and writes on all ten: it has an order of its own, or
    takes longer for each. That is probable at most.
    """
    talks = [Talk(0.016, 0.003, Ends(("10.0.0.1", 40_000 + n))) for n in range(10)]
    head, body = answer(600)
    for number, talk in enumerate(talks):
        talk.open(number * 0.1)
    at = 10.0
    for time in range(6):
        tick = held(at + 41.0)
        for number, talk in enumerate(talks):
            asked = at + number * 0.02
            talk.client(asked, get())
            talk.server(asked + 0.3, head)
            place = number if turn > 0 else 9 - number
            acked, freed = (tick + (9 - number) * 0.002, tick + 0.2 + place * us / 1000) if time else (
                asked + 0.304, asked + 0.35)  # fmt: skip
            talk.client(acked)
            talk.server(freed, body)
            talk.client(freed + 0.3)
        at = tick + 3.0
    return pcap(sorted((s for talk in talks for s in talk.tape), key=lambda s: s.time_ns), nanos=True)


@variants(at_server={"legs": (0.01, 2.0)}, at_client={"legs": (2.0, 0.01)})
def window_of_two_segments(legs: tuple[float, float]) -> bytes:
    """A receiver with room for 2,878 bytes: each window takes a full segment and a small one, and opens with an ACK
    that is held for 40 ms. Behind it go the next two. TCP_NODELAY is set.

    Not to be mistaken for: Nagle's algorithm. The small segment of one window and that of the next have an ACK between
    them, but until then there was no room.
    """
    talk = Talk(*legs, scale=None, client_window=2878)
    talk.open()
    at = 10.0
    for _ in range(6):
        talk.client(at, get())
        at += legs[0] + 0.2
        head, body = answer(14_390 - len(answer(14_390)[0]))
        whole = head + body
        for start in range(0, len(whole), 2878):
            talk.server(at, whole[start : start + 1460])
            talk.server(at + 0.001, whole[start + 1460 : start + 2878])
            talk.client(at + legs[1] + 41.0 - start / 7000)
            at += sum(legs) + 41.0 - start / 7000 + 0.02
        at += 3.0
    return pcap(talk.tape, nanos=True)


def _stored_quietly(held_back: bool, server_leg: float, client_leg: float) -> bytes:
    """Twenty values stored without an answer, each followed by a question for it."""
    talk, rng = Talk(server_leg=server_leg, client_leg=client_leg), random.Random(31)
    talk.open()
    at = 10.0
    for n in range(20):
        talk.client(at, b"set k 0 0 100 noreply\r\n" + b"v" * 100 + b"\r\n")
        hold = rng.uniform(40.0, 44.0) if n else 0.0
        acked = at + server_leg + hold
        if held_back:
            talk.server(acked)
            asked = acked + client_leg + 0.005
        else:
            asked = at + rng.choice([25.0, 55.0])
            if asked > acked:
                talk.server(acked)
        talk.client(asked, b"get k\r\n")
        told = asked + server_leg + 0.1
        talk.server(told, b"VALUE k 0 100\r\n" + b"v" * 100 + b"\r\nEND\r\n")
        talk.client(told + client_leg)
        at = told + 20.0
    return pcap(talk.tape)


@variants(
    at_client={"held_back": True, "server_leg": 3.0, "client_leg": 0.01},
    at_server={"held_back": True, "server_leg": 0.01, "client_leg": 3.0},
    decoy_paused={"held_back": False, "server_leg": 3.0, "client_leg": 0.01},
)
def asked_behind_a_quiet_store(held_back: bool, server_leg: float, client_leg: float) -> bytes:
    """A memcached client stores a value with noreply and asks for it at once. Nagle's algorithm holds the question back
    until the server's delayed ACK of the value: 40 to 44 ms before it is on the wire. Those are the question's, and it
    begins with the value's segment. (decoy_paused: TCP_NODELAY, and the program asks 25 or 55 ms later, now before the
    ACK and now after it: the question begins when it is sent.)

    Not to be mistaken for: a quick question after a client's pause; nor the pause for a wait.
    """
    return _stored_quietly(held_back, server_leg, client_leg)


@variants(quiet={"leg": 4.5, "pause": 54.0}, bursts={"leg": 1.0, "pause": 52.0, "burst": 20.0})
def pauses_behind_acks(leg: float, pause: float, burst: float = 0.0) -> bytes:
    """Nagle's algorithm is on, and every third answer's body is written some 50 ms behind its head, a moment after the
    held ACK came; the others are written at once. Seen at the client, over a quiet path or one with bursts of 20 ms.

    Not to be mistaken for: stalls. Those of the other answers are some.
    """
    head, body = answer(200)

    def third(number: int, script: Script) -> Script:
        return replace(script, answer=((0.0, head), (pause if number % 3 == 2 else 0.0, body)))

    script = Script(((0.0, get()),), (), exchanges=24, client_think=(3.0, 9.0), alter=third)
    path = Path(0.005, leg, burst_ms=burst, burst_share=0.06)
    return pcap(record(script, path=path, connections=2, seed=3).tape)
