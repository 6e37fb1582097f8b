"""The reference situations as scripts: many exchanges of one connection, with the truth beside them.

Each gives its `Talk` and, per exchange, the frames and instants from which the truth follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from makepcap import Talk, answer, get, held

THINK = 0.2  # request to head, at the capture, beyond the server's leg
RELEASE = 0.01  # ACK at the sender to the segment that it frees


@dataclass(frozen=True)
class Exchange:
    """Frames and instants (ms) of one exchange: request, head, the ACK of the head, body."""

    request: int
    head: int
    body: int
    asked: float
    headed: float
    bodied: float
    hold: float | None = None
    """How long the client sat on its ACK; None where the ACK came at once or nothing waited."""


def next_request(talk: Talk, done: float, i: int) -> float:
    """The client acknowledges the answer and asks again after a while of its own."""
    talk.client(done + talk.client_leg)
    return done + talk.client_leg + 0.5 + (i * 7 % 10) * 0.37


def stall(n: int = 12, **path: Any) -> tuple[Talk, list[Exchange]]:
    """Nagle and delayed ACK: the body waits for the ACK of the head, which the client's timer sends.

    The first head of the connection is acknowledged at once (quick ACKs), the later ones 40 to 44 ms late, on a tick.
    """
    talk = Talk(**path)
    talk.open()
    head, body = answer(612)
    done, found = 5.0, []
    at = done
    for i in range(n):
        request = talk.client(at, get())
        headed = at + talk.server_leg + THINK
        first = talk.server(headed, head)
        quick = headed + talk.client_leg
        acked = quick if i == 0 else held(quick + 40)
        talk.client(acked)
        done = acked + talk.server_leg + RELEASE
        second = talk.server(done, body)
        found.append(Exchange(request, first, second, at, headed, done, acked - quick if i else None))
        at = next_request(talk, done, i)
    return talk, found


def pause(n: int = 12, length: float = 42.0, **path: Any) -> tuple[Talk, list[Exchange]]:
    """The decoy: TCP_NODELAY, and the program pauses between head and body for about as long as an ACK is held."""
    talk = Talk(**path)
    talk.open()
    head, body = answer(612)
    at, found = 5.0, []
    for i in range(n):
        request = talk.client(at, get())
        headed = at + talk.server_leg + THINK
        first = talk.server(headed, head)
        acked, bodied = held(headed + talk.client_leg + 40), headed + length
        if i and acked < bodied:
            talk.client(acked)
        second = talk.server(bodied, body)
        found.append(Exchange(request, first, second, at, headed, bodied))
        at = next_request(talk, bodied, i)
    return talk, found


def think(n: int = 12, length: float = 60.0, **path: Any) -> tuple[Talk, list[Exchange]]:
    """The server works, its kernel acknowledges the request meanwhile, the answer leaves in one write."""
    talk = Talk(**path)
    talk.open()
    whole = b"".join(answer(612))
    at, found = 5.0, []
    for i in range(n):
        request = talk.client(at, get())
        talk.server(held(at + talk.server_leg + 40))
        done = at + talk.server_leg + length
        only = talk.server(done, whole)
        found.append(Exchange(request, only, only, at, done, done))
        at = next_request(talk, done, i)
    return talk, found


def quick(n: int = 12, **path: Any) -> tuple[Talk, list[Exchange]]:
    """Nagle, but the client acknowledges at once (TCP_QUICKACK): a wait of one round trip, nothing held."""
    talk = Talk(**path)
    talk.open()
    head, body = answer(612)
    at, found = 5.0, []
    for i in range(n):
        request = talk.client(at, get())
        headed = at + talk.server_leg + THINK
        first = talk.server(headed, head)
        acked = headed + talk.client_leg
        talk.client(acked)
        done = acked + talk.server_leg + RELEASE
        second = talk.server(done, body)
        found.append(Exchange(request, first, second, at, headed, done))
        at = next_request(talk, done, i)
    return talk, found
