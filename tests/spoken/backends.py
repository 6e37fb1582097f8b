"""What is said of a server whose time another one took, which it asked meanwhile."""

from __future__ import annotations

import random

from case_scripts.proxies import fronts_of, in_order
from makepcap import Ends, Talk, answer, get

from spoken.registry import says


def _back() -> Talk:
    """The front's connection to the server behind it, open."""
    back = Talk(server_leg=1.0, client_leg=0.01, ends=Ends(("10.0.0.2", 50_000), ("10.0.0.3", 8080)))
    back.open(2.0)
    return back


def _asks(front: Talk, back: Talk, rng: random.Random, at: float, works: float) -> float:
    """A request that the front hands to the back, which works so long; when the answer is read."""
    asked = at + rng.uniform(0.05, 0.1)
    front.client(at, get("/"))
    back.client(asked, get("/"))
    told = asked + 1.0 + works
    back.server(told, b"".join(answer(600)))
    back.client(told + 1.0)
    done = told + 1.0 + rng.uniform(0.05, 0.1)
    front.server(done, b"".join(answer(600)))
    front.client(done + 2.0)
    return done + 2.0 + rng.uniform(3.0, 9.0)


@says("10.0.0.2:80 is probably slow because 10.0.0.3:8080 is, which it asks: most time there goes to the server's")
def backend_works() -> bytes:
    rng, (front,) = random.Random(1), fronts_of(1)
    back = _back()
    at = 10.0
    for _ in range(30):
        at = _asks(front, back, rng, at, rng.uniform(40.0, 90.0))
    return in_order(back.tape, front.tape)


@says("10.0.0.2:80: 3 of 60 requests are slow", "because 10.0.0.3:8080 is, which it asks")
def backend_works_now_and_then() -> bytes:
    rng, (front,) = random.Random(2), fronts_of(1)
    back = _back()
    at = 10.0
    for n in range(60):
        at = _asks(front, back, rng, at, rng.uniform(110.0, 150.0) if n % 20 == 19 else rng.uniform(1.0, 2.0))
    return in_order(back.tape, front.tape)


@says(
    "requests to there wait for acknowledgements that it holds back", "Towards 10.0.0.3:8080: TCP_NODELAY on the client"
)
def proxy_writes_in_two_parts() -> bytes:
    rng, (front,) = random.Random(3), fronts_of(1)
    back = _back()
    head, body = b"POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 300\r\n\r\n", b"x" * 300
    at = 10.0
    for n in range(36):
        front.client(at, get("/"))
        asked = at + rng.uniform(0.05, 0.1)
        back.client(asked, head)
        acked = asked + 2.0 + (rng.uniform(40.0, 44.0) if n else 0.0)
        back.server(acked)
        back.client(acked + 0.01, body)
        told = acked + 2.2
        back.server(told, b"".join(answer(600)))
        back.client(told + 1.0)
        done = told + 1.0 + rng.uniform(0.05, 0.1)
        front.server(done, b"".join(answer(600)))
        front.client(done + 2.0)
        at = done + 2.0 + rng.uniform(3.0, 9.0)
    return in_order(back.tape, front.tape)


@says("because another server is, which it asks", server="10.0.0.2:80")
def two_fronts_of_one_backend() -> bytes:
    rng = random.Random(4)
    ends = (Ends(("10.0.0.1", 40_000 + n), ("10.0.0.2", 80 + n)) for n in range(2))
    fronts = [Talk(server_leg=0.01, client_leg=2.0, ends=one) for one in ends]
    for front in fronts:
        front.open(0.5)
    back = _back()
    at = 10.0
    for n in range(60):
        at = _asks(fronts[n % 2], back, rng, at, rng.uniform(40.0, 90.0))
    return in_order(back.tape, *(front.tape for front in fronts))
