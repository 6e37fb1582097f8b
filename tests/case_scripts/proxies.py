"""A server that asks another one while it is asked, and hosts that only ask at the same time."""

from __future__ import annotations

import random

from makepcap import Ends, Segment, Talk, answer, get, pcap

from case_scripts.registry import case, variants

LOCAL = "127.0.0.1"


def in_order(*tapes: list[Segment]) -> bytes:
    return pcap(sorted((segment for tape in tapes for segment in tape), key=lambda segment: segment.time_ns))


def fronts_of(count: int) -> list[Talk]:
    """So many connections of a client to the proxy, captured at the proxy."""
    fronts = []
    for n in range(count):
        ends = Ends(("10.0.0.1", 40_000 + n), ("10.0.0.2", 80))
        fronts.append(Talk(server_leg=0.01, client_leg=2.0, ends=ends))
        fronts[-1].open(0.5 * n)
    return fronts


@case
def proxy_waits_for_its_backend() -> bytes:
    """A proxy that buffers answers, and keeps one connection to its backend for three connections of its client. The
    backend's Nagle waits for the ACK that the proxy's kernel holds. Every fourth answer comes from the proxy's cache.

    Not to be mistaken for: the proxy's own program, or an ACK that is held somewhere else; a cached answer waits for
    nothing.
    """
    rng, fronts = random.Random(5), fronts_of(3)
    back = Talk(server_leg=1.0, client_leg=0.01, ends=Ends(("10.0.0.2", 50_000), ("10.0.0.3", 8080)))
    back.open(2.0)
    head, body = answer(600)
    at = 10.0
    for n in range(36):
        front = fronts[n % 3]
        front.client(at, get(f"/{n}"))
        done = at + 0.15
        if n % 4 != 3:  # not in the cache
            asked = at + rng.uniform(0.05, 0.1)
            back.client(asked, get(f"/{n}"))
            told = asked + 1.0 + rng.uniform(0.1, 0.3)
            back.server(told, head)
            acked = told + (rng.uniform(40.0, 44.0) if n else 0.02)
            back.client(acked)
            back.server(acked + 1.0, body)
            done = acked + 1.0 + rng.uniform(0.05, 0.1)
        front.server(done, head + body)
        front.client(done + 2.0)
        at = done + rng.uniform(3.0, 9.0)
    return in_order(back.tape, *(front.tape for front in fronts))


@case
def decoy_health_checks() -> bytes:
    """A server that works 50 ms for each answer, one behind the other; something on its host asks another server for
    its health every 7 ms.

    Not to be mistaken for: a proxy; nearly all of those requests lie inside the client's, but no more than luck has it.
    """
    rng, (front,) = random.Random(6), fronts_of(1)
    back = Talk(server_leg=1.0, client_leg=0.01, ends=Ends(("10.0.0.2", 50_000), ("10.0.0.3", 8080)))
    back.open(2.0)
    whole = b"".join(answer(60))
    at = 10.0
    for n in range(20):
        front.client(at, get(f"/{n}"))
        done = at + rng.uniform(49.0, 51.0)
        front.server(done, whole)
        front.client(done + 2.0)
        at = done + 2.2
    for n in range(150):
        asked = 8.0 + 7.0 * n
        back.client(asked, get("/health"))
        back.server(asked + 1.2, whole)
        back.client(asked + 1.21)
    return in_order(front.tape, back.tape)


@variants(one_host={"servers": (LOCAL, LOCAL)}, one_client={"servers": ("10.0.0.2", "10.0.0.3")})
def decoy_asked_in_lockstep(servers: tuple[str, str]) -> bytes:
    """A client that asks two servers at the same time, again and again; both sleep, one a little longer.

    Not to be mistaken for: a server that asks the other one, although the other's answers always come just before its
    own.
    """
    rng = random.Random(7)
    client = servers[0] if servers[0] == LOCAL else "10.0.0.1"
    leg = 0.01 if client == LOCAL else 1.0
    first, second = (
        Talk(server_leg=leg, client_leg=0.01, ends=Ends((client, 40_000 + n), (server, 8000 + n)))
        for n, server in enumerate(servers)
    )
    first.open()
    second.open(0.1)
    whole = b"".join(answer(60))
    at = 10.0
    for n in range(20):
        first.client(at, get(f"/{n}"))
        second.client(at + 0.02, get(f"/{n}"))
        second.server(at + 50.0 + rng.uniform(0.0, 0.2), whole)
        done = at + 50.3 + rng.uniform(0.0, 0.2)
        first.server(done, whole)
        at = done + 1.0
    return in_order(first.tape, second.tape)
