"""Random conversations: what no script would think of. Used by the property tests and against tshark."""

from __future__ import annotations

import random
from dataclasses import replace

from makepcap import Ends, Segment, Talk, answer, get, sack

REQUESTS = [get(), get("/h", "HEAD"), get("/p", "POST", "Content-Length: 30") + b"p" * 30, b"PING\n"]
ANSWERS = [
    b"".join(answer(0)),
    b"".join(answer(900)),
    b"".join(answer(5000)),
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"PONG\n",
]


def conversation(seed: int, port: int = 40_000, exchanges: int = 8) -> list[Segment]:
    """A connection with splits, holds, losses, repeats, closed windows, keep-alives, FIN or RST."""
    r = random.Random(seed)
    talk = Talk(
        server_leg=r.choice([0.01, 5.0, 40.0]),
        client_leg=r.choice([0.01, 1.0, 40.0]),
        ends=Ends(("10.0.0.1", port), ("10.0.0.2", r.choice([80, 8080]))),
        stamped=r.random() < 0.5,
        isn=(r.choice([1000, 2**32 - 500]), r.choice([5000, 2**32 - 3])),
        scale=r.choice([None, 0, 7]),
    )
    at = r.uniform(0, 5)
    if r.random() < 0.8:
        talk.open(at)
        at += talk.client_leg + talk.server_leg
    else:
        talk.c.sent = talk.s.sent = 1

    def send(from_client: bool, data: bytes) -> None:
        nonlocal at
        write, own = (talk.client, talk.s) if from_client else (talk.server, talk.c)
        reply = talk.server if from_client else talk.client
        while data:
            size = r.choice([1, 7, 200, 1460, 1460, 4000])
            part, data = data[:size], data[size:]
            at += r.choice([0, 0.005, 0.3, 20, 43])
            first = talk.c.sent if from_client else talk.s.sent
            write(at, part)
            if r.random() < 0.5:
                at += r.choice([0.01, 1, 41.5, 43.9])
                reply(at, window=r.choice([64_240, 64_240, 64_240, 500, 0]))
            if r.random() < 0.1:
                at += r.choice([0.01, 1, 20])
                block = (own.isn + own.sent, own.isn + own.sent + 100)
                for _ in range(r.randint(1, 4)):
                    reply(at, ack=first, options=[sack(block)] if talk.scale is not None else [])
            if r.random() < 0.15:
                at += r.choice([0.01, 2, 210, 460])
                write(at, part, seq=first)
            if r.random() < 0.05:
                at += 200
                write(at, seq=first + len(part) - 1)

    for _ in range(exchanges):
        at += r.choice([0.05, 1, 30])
        send(True, r.choice(REQUESTS))
        at += r.choice([0.05, 0.2, 42, 300])
        send(False, r.choice(ANSWERS))
    if r.random() < 0.7:
        at += 1
        r.choice([talk.client, talk.server])(at, flags=r.choice(["FA", "R", "RA"]))
        talk.client(at + 1)
    kept = [s for s in talk.tape if r.random() > r.choice([0, 0.03])]
    if r.random() < 0.3 and len(kept) > 6:  # two packets change places
        i = r.randrange(4, len(kept) - 1)
        a, b = kept[i : i + 2]
        kept[i : i + 2] = [replace(b, time_ns=a.time_ns), replace(a, time_ns=b.time_ns)]
    return [replace(s, time_ns=s.time_ns // 1000 * 1000) for s in kept]


def crowd(seed: int, connections: int, ports: int = 10_000) -> list[Segment]:
    """Many of them at once, in order of time; with fewer ports some are used twice, even at the same time."""
    tape = [s for i in range(connections) for s in conversation(seed * 1000 + i, 40_000 + i % ports)]
    return sorted(tape, key=lambda s: s.time_ns)
