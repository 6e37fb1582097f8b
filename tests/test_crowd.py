"""Evidence on very many senders: beyond a cap that on those that were quiet longest is let go, and an issue says so."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest
from makepcap import Ends, Talk, get, pcap

import latpcap

CROWDED = 393_216
"""In core/src/evidence/mod.rs."""
EARLY = 60
"""Segments that leave over unacknowledged small ones in each of the talks."""
CLIENTS = CROWDED // EARLY
HEADER, RECORD, ADDRESSES = 24, 16, (14 + 12, 14 + 16)


def stalls(client: str, ms: float) -> Talk:
    """Thirty answers whose second part waits for a held ACK."""
    talk = Talk(ends=Ends((client, 40_000)), client_leg=0.01)
    talk.open(ms)
    for turn in range(30):
        at = ms + 10 + 100 * turn
        head, hold = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", 40 + turn % 4
        talk.client(at, get())
        talk.server(at + 0.2, head)
        talk.client(at + 0.2 + hold)
        talk.server(at + 0.212 + hold, b"x")
        talk.client(at + 0.23 + hold)
    return talk


def chatter() -> bytes:
    """The records of one request whose answer is written in small pieces that wait for no ACK."""
    talk = Talk(ends=Ends(("10.1.0.0", 40_000)), client_leg=0.01)
    talk.open(0)
    talk.client(1, get())
    talk.server(2, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % EARLY)
    for piece in range(EARLY):
        talk.server(3 + piece, b"x")
    talk.client(4 + EARLY)
    return pcap(talk.tape)[HEADER:]


def crowd(clients: int) -> bytes:
    """A stalled client, so many others each a tenth of a second after the last, and another stalled one."""
    once = np.frombuffer(chatter(), "uint8")
    copies = np.tile(once, (clients, 1))
    number, place = np.arange(clients), 0
    while place < once.size:
        seconds, micros, held, _ = once[place : place + RECORD].view("<u4")
        at = int(micros) + 100_000 * number
        instants = np.stack([int(seconds) + 10 + at // 1_000_000, at % 1_000_000], 1)
        copies[:, place : place + 8] = instants.astype("<u4").view("uint8")
        for address in ADDRESSES:
            start = place + RECORD + address
            if once[start : start + 4].tobytes() == b"\x0a\x01\0\0":
                copies[:, start + 2], copies[:, start + 3] = number >> 8, number & 255
        place += RECORD + int(held)
    first, last = stalls("10.0.0.1", 0), stalls("10.0.0.3", 20_000 + 100 * clients)
    return pcap(first.tape) + copies.tobytes() + pcap(last.tape)[HEADER:]


def told(capture: latpcap.Capture, client: str) -> list[tuple[object, ...]]:
    """What is said of a stalled client: its evidence, and the grades of its stalls."""
    row = capture.arrow("evidence").filter(pc.field("client") == client).to_pylist()
    streams = capture.arrow("streams").filter(pc.field("client") == client)["stream"]
    mine = capture.arrow("exchanges").filter(pc.is_in(capture.arrow("exchanges")["stream"], streams))["exchange"]
    causes = capture.arrow("causes")
    causes = causes.filter(pc.is_in(causes["exchange"], mine.combine_chunks()))
    rows = zip(causes["cause"].to_pylist(), causes["grade"].to_pylist(), causes["because"].to_pylist(), strict=True)
    return [*((r["verdict"], r["held"], r["slope"], r["opportunities"]) for r in row), *rows]


@pytest.mark.parametrize("clients", [CLIENTS - 20, CLIENTS + 20])
def test_a_crowd_leaves_what_was_said(clients: int) -> None:
    capture = latpcap.read(crowd(clients))
    alone = latpcap.read(crowd(1))
    reasons = [row["reason"] for row in capture.arrow("issues").to_pylist()]
    assert any("evicted" in reason for reason in reasons) == (clients > CLIENTS), reasons
    for client in ("10.0.0.1", "10.0.0.3"):
        assert told(alone, client)[0][:2] == ("nagle", 30)
        assert told(capture, client) == told(alone, client)
    others = capture.arrow("evidence").filter(pc.starts_with(capture.arrow("evidence")["client"], "10.1.")).to_pylist()
    assert len(others) == clients
    assert {(row["verdict"], row["opportunities"], row["refuted"]) for row in others} == {("nodelay", EARLY, EARLY)}
