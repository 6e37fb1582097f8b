"""Timers that end a wait: the kernel's pacing, held ACKs that another connection shows, shorter timers of a route."""

from __future__ import annotations

from makepcap import Talk, answer, get, held, pcap

from case_scripts.registry import case, variants

FULL = 1460


def asked(talk: Talk, at: float) -> float:
    """A request that the server acknowledges at once: when it had come there."""
    talk.client(at, get())
    talk.server(at + talk.server_leg)
    return at + talk.server_leg


@case
def waits_elsewhere() -> bytes:
    """A proxy whose backend is held up: its answers wait for a kernel's timer that this connection does not show. Two
    took longer, for its program had worked before: they end on the same tick.

    Not to be mistaken for: a program that takes 50 to 60 ms. That would be proven, where nothing tells of a timer.
    """
    talk = Talk(server_leg=0.01, client_leg=3.0)
    talk.open()
    at = 10.0
    for number in range(24):
        work = {9: 13.0, 17: 17.5}.get(number, 0.2 + number % 5 * 0.4)
        left = held(asked(talk, at) + work + 40.0)
        talk.server(left, b"".join(answer(300)))
        talk.client(left + talk.client_leg)
        at = left + talk.client_leg + 0.7 + number % 7 * 0.9
    return pcap(talk.tape)


@variants(by_the_kernel={"wavers": 0.0}, decoy_by_the_program={"wavers": 9.0})
def paced_tails(wavers: float) -> bytes:
    """Answers of two full segments and a tail. The kernel paces nothing (SO_MAX_PACING_RATE) before ten segments have
    left: three answers leave whole, and then each tail waits for as long as the rate needs for what left before it.

    Not to be mistaken for: a program that pauses there, now more and now less. Where one pauses for one length, only
    the first answers speak against it: it stays probable.
    """
    talk = Talk(server_leg=0.01, client_leg=3.0)
    talk.open()
    at = 10.0
    for number in range(12):
        head, body = answer(2 * FULL + 100)
        whole = head + body
        left = asked(talk, at) + 0.2
        talk.server(left, whole[:FULL])
        talk.server(left + 0.01, whole[FULL : 2 * FULL])
        if number > 2:
            talk.client(left + talk.client_leg)
            left += 58.0 + number * 5 % 7 * wavers
        talk.server(left + 0.02, whole[2 * FULL :])
        talk.client(left + 0.02 + talk.client_leg)
        at = left + talk.client_leg + 0.5
    return pcap(talk.tape)


@variants(
    decoy_wavering={"legs": (3.0, 0.01), "late": "wavering"},
    decoy_batches={"legs": (0.01, 3.0), "late": "batches"},
    decoy_busy={"legs": (0.01, 3.0), "late": "busy"},
    decoy_longer_way={"legs": (0.01, 3.0), "late": "longer way"},
)
def short_holds(legs: tuple[float, float], late: str) -> bytes:
    """Head and body with Nagle's algorithm on, and a client whose route has rto_min 20ms: its kernel holds each ACK for
    16 ms and until its next tick (tcp_delack_max), no 40 ms. Its next requests come at once.

    Not to be mistaken for: a path that wavers, a line that gathers frames for 12 ms, a client too busy to answer at
    once, a path that is 16 ms longer from some time on. Then requests are as late as ACKs, now more and now less.
    """
    talk = Talk(server_leg=legs[0], client_leg=legs[1])
    talk.open()
    head, body = answer(300)
    at = 10.0
    for number in range(40):
        talk.client(at, get())
        sent = at + talk.server_leg + 0.3 + number % 3 * 0.05
        talk.server(sent, head)
        reached, asks = sent + talk.client_leg, 0.2 + number % 4 * 0.1
        match late:
            case "timer":
                acked = held(reached + 16.0)
            case "batches":
                acked = -(-reached // 12.0) * 12.0
            case "longer way":
                acked, asks = (reached + 16.0, asks + 16.0) if number > 20 else (reached, asks)
            case _:  # wavering or busy
                acked, asks = reached + 2.0 + number * 7 % 19, asks + number * 5 % 17
        talk.client(acked)
        freed = acked + talk.server_leg
        talk.server(freed + 0.02, body)
        at = freed + 0.02 + talk.client_leg + asks
        if late == "batches":
            at = -(-at // 12.0) * 12.0
    return pcap(talk.tape)


@variants(filled={"room": 168}, decoy_not_filled={"room": 169})
def small_window(room: int) -> bytes:
    """A client uploads 6,000 bytes, and the server's window has room for 168 after three full segments: the client's
    kernel sends these when its probe timer ends, and the rest when the window opens. Their server makes it wait.

    Not to be mistaken for: a program that pauses for 218 ms, and writes a byte less than the window takes.
    """
    talk = Talk(server_leg=3.0, client_leg=0.01, scale=0)
    talk.open()
    body = b"x" * 6000
    request = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6000\r\n\r\n" + body
    sent = 3 * FULL
    for number in range(3):
        talk.client(10.0 + number * 0.01, request[number * FULL : (number + 1) * FULL])
    talk.server(13.0, window=room)
    talk.client(231.0, request[sent : sent + 168])
    talk.server(234.0, window=0)
    talk.server(260.0, window=20_000)
    talk.client(260.02, request[sent + 168 : sent + 168 + FULL])
    talk.client(260.03, request[sent + 168 + FULL :])
    talk.server(264.0, b"".join(answer(20)))
    talk.client(264.02)
    return pcap(talk.tape)


@variants(
    by_a_nat={"handshake": 100.0, "answers": 104.0},
    by_a_nat_as_long_as_a_timer={"handshake": 205.0, "answers": 206.0},
    decoy_slow_handshake={"handshake": 100.0, "answers": 60.0},
    decoy_slow_program={"handshake": 0.3, "answers": 104.0},
)
def answered_for(handshake: float, answers: float) -> bytes:
    """Recorded in a virtual machine: its NAT acknowledges each request after 0.1 ms. SYN/ACK and answers come from the
    server, after 100 ms: that is the path's, and no kernel's ACK proves any of it to be the program's.

    Not to be mistaken for: a server near by whose first packet took long, or whose program does. There the ACKs are its
    own kernel's, and what its answers take is the program's.
    """
    talk = Talk(server_leg=handshake, client_leg=0.01)
    talk.open()
    talk.server_leg = 0.1
    at = 200.0
    for number in range(12):
        left = asked(talk, at) + answers + number % 4 * 1.5
        talk.server(left, b"".join(answer(300)))
        talk.client(left + talk.client_leg)
        at = left + 5.0 + number % 3
    return pcap(talk.tape)


@variants(queue={"others": 1.0, "last": FULL}, decoy_program={"others": 0.1, "last": 400})
def last_ack_late(others: float, last: int) -> bytes:
    """Uploads of twenty full segments through a queue that grows: each pair's ACK takes longer than the one before, the
    last one's 150 ms. The answer comes 15 ms after that: the queue had the request before, and not the program.

    Not to be mistaken for: ACKs that come soon but for that of a short last segment, which a receiver may hold back.
    """
    talk = Talk(server_leg=2.0, client_leg=0.01)
    talk.open()
    rest = 19 * FULL + last - 1000
    head = b"POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nX: " % rest
    whole = head + b"x" * (1000 - len(head) - 4) + b"\r\n\r\n" + bytes(rest)
    at = 50.0
    for _ in range(3):
        begun = talk.c.sent
        for part in range(20):
            talk.client(at + part * 0.01, whole[part * FULL : (part + 1) * FULL])
        for pair in range(1, 11):
            late = 15.0 * pair * (others if pair < 10 else 1.0)
            talk.server(at + 0.2 + late, ack=begun + min(pair * 2 * FULL, len(whole)))
        talk.server(at + 165.0, b"".join(answer(300)))
        talk.client(at + 165.02)
        at += 300.0
    return pcap(talk.tape)
