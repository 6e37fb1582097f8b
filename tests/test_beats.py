"""Where no protocol is known: heartbeats and what a person types are no requests; what only looks like them is one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from makepcap import Talk, pcap

import latpcap as lp

Said = tuple[float, str, bytes]
BEAT = b"\0\x01PING"


def every(ms: float, first: float, who: str, what: bytes, times: int) -> list[Said]:
    return [(first + ms * turn, who, what) for turn in range(times)]


def talk(said: Iterable[Said]) -> lp.Capture:
    """When, who ("c" or "s") and what; each message is acknowledged by its receiver's kernel."""
    tape = Talk(server_leg=5.0, client_leg=0.01)
    tape.open()
    sides = {"c": (tape.client, 5.2, "s"), "s": (tape.server, 41.0, "c")}
    messages = [*said]
    acks = [(at + sides[who][1], sides[who][2], b"") for at, who, _ in messages]
    for at, who, what in sorted([*messages, *acks]):
        sides[who][0](at, what)
    return lp.read(pcap(tape.tape))


@pytest.mark.parametrize(
    "server",
    [
        every(1000, 510, "s", BEAT, 9),  # of one form, half a period later
        every(1300, 317, "s", b"\0\x02alive!", 15),  # a timer of its own
    ],
)
def test_heartbeats_of_both_sides_are_no_requests(server: list[Said]) -> None:
    cap = talk([*every(1000, 10, "c", BEAT, 20), *server])
    assert not len(cap.exchanges) and not cap.streams["exchanges"].any()
    assert "slow" not in cap.why().headline


@pytest.mark.parametrize(
    ("form", "late"),
    [
        (b"\0\x01PONGPONG", 500),  # another form, always as late: a server that is polled, and slow
        (BEAT, 7),  # the same form, at once
    ],
)
def test_what_is_polled_at_a_rhythm_is_requested(form: bytes, late: float) -> None:
    cap = talk([*every(1000, 10, "c", BEAT, 6), *every(1000, 10 + late, "s", form, 6)])
    assert list(cap.exchanges["ttfb_ms"]) == [late] * 6
    assert cap.streams["exchanges"].iloc[0] == 6


def test_a_request_among_heartbeats_stays() -> None:
    beats = [*every(2000, 10, "c", BEAT, 12), *every(2000, 930, "s", BEAT, 12)]
    cap = talk([*beats, (9300, "c", b"q" * 200), (9340, "s", b"r" * 900)])
    assert list(cap.exchanges["request_bytes"]) == [200] and list(cap.exchanges["latency_ms"]) == [40.0]


@pytest.mark.parametrize(("behind", "size"), [(40, 200), (90, 20), (300, 200)])
def test_a_request_soon_behind_a_heartbeat_is_not_one_with_it(behind: float, size: int) -> None:
    beats = [*every(2000, 10, "c", BEAT, 12), *every(2000, 930, "s", BEAT, 12)]
    at = 10010 + behind
    cap = talk([*beats, (at, "c", b"q" * size), (at + 40, "s", b"r" * 900)])
    (row,) = cap.exchanges.to_dict("records")
    assert (row["request_bytes"], row["latency_ms"], row["client_think_ms"]) == (size, 40.0, 0.0)


def test_turns_of_answers_that_vary_are_no_beats() -> None:
    said = [pair for turn, late in enumerate((120, 700, 300, 610, 90, 450)) for pair in (
        (10.0 + 1000 * turn, "c", BEAT), (10.0 + 1000 * turn + late, "s", BEAT),
    )]  # fmt: skip
    assert len(talk(said).exchanges) == 6


def test_bursts_of_a_client_that_are_apart_are_not_one_request() -> None:
    said = [(10, "c", b"hello"), (20, "s", b"ok"), *((1000 + 350 * n, "c", b"a" * 300) for n in range(3))]
    last = talk([*said, (1710, "s", b"yes")]).exchanges.iloc[-1]
    assert (last["request_bytes"], last["ttfb_ms"]) == (300, 10.0)


def test_what_is_typed_counts_from_its_last_key() -> None:
    keys = [(10 + 150 * n, "c", bytes([97 + n])) for n in range(10)]
    (row,) = talk([*keys, (1510, "c", b"\r"), (1530, "s", b"done")]).exchanges.to_dict("records")
    assert (row["request_bytes"], row["ttfb_ms"], row["client_think_ms"]) == (11, 20.0, 0.0)
    # as many bytes in two parts were written by a program
    halves = talk([(10, "c", b"abcde"), (200, "c", b"fghij\r"), (230, "s", b"done")]).exchanges
    assert list(halves["ttfb_ms"]) == [220.0]


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("/api/v1/pods?watch=1&resourceVersion=7", "event_stream"),
        ("/v1/kv/a?index=7&wait=60s", "long_poll"),
        ("/api/v1/pods?limit=1", "request"),
    ],
)
def test_watches_and_blocking_queries_are_no_plain_requests(target: str, kind: str) -> None:
    tape = Talk(server_leg=5.0, client_leg=0.01)
    tape.open()
    tape.client(10, f"GET {target} HTTP/1.1\r\nHost: api.lab\r\n\r\n".encode())
    tape.server(16, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    for second in (2, 4):
        tape.server(1000 * second, b'9\r\n{"a": 1}\n\r\n')
    row = lp.read(pcap(tape.tape)).exchanges.iloc[0]
    assert (row["kind"], row["pieces"], row["first_chunk_ms"], row["longest_gap_ms"]) == (kind, 2, 1990.0, 2000.0)
