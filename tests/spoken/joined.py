"""Answers over joined captures: what was made to happen between the points, and the lines that are true of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from makepcap import Ends, Segment
from test_joined import (
    clock,
    joined,
    merged,
    nat,
    one_file,
    other_ids,
    other_numbers,
    proxied,
    stalled,
)
from twopoints import MS, Talker, Wire, capture, talk

import latpcap as lp
from latpcap.joined.chain import Chain

Answer = lp.Joined | Chain
JOINED: dict[str, tuple[Callable[[], Answer], tuple[str, ...]]] = {}


def prints(*lines: str) -> Callable[[Callable[[], Answer]], Callable[[], Answer]]:
    """The answer over what this function joins has these lines, or parts of lines."""

    def keep(make: Callable[[], Answer]) -> Callable[[], Answer]:
        JOINED[make.__name__] = make, lines
        return make

    return keep


def talked(seed: int = 1, requests: int = 8, pause_ms: float = 5.0, size: int = 100, **of: object) -> Wire:
    """One connection and its requests, answered after the program's pause."""
    wire = Wire(seed=seed, **of)  # type: ignore[arg-type]
    talker = Talker(wire, Ends(("10.0.0.1", 40_000), ("10.0.0.2", 80)))
    now = talker.open(0)
    for number in range(requests):
        now = talker.ask(now + 15 * MS, f"/{number}", pause_ms, size)
    return wire


@prints("Answers wait for acknowledgements that the client's side holds back", "58 of 60 exchanges", "1 router; client")
def the_sample() -> Answer:
    folder = Path(__file__).parents[2] / "sample_pcaps" / "two-points"
    return lp.join(folder / "client.pcap", folder / "server.pcap")


@prints("40.0 held by the client (proven at the client)", "1.00 in the server's program", "in 12 of 12 exchanges")
def acks_held_for_40_ms() -> Answer:
    return stalled([40.0] * 12)


@prints("Most of the time is spent between the two points.", "no router; nothing rewritten", "none lost")
def a_long_way() -> Answer:
    return joined(talked(there_ms=30.0, back_ms=30.0))


@prints("Most of the time is spent on the server's side: the server program had not", "s are too short for its rate")
def a_slow_program() -> Answer:
    return joined(talked(pause_ms=80.0))


@prints("Packets are lost between the two points", "until lost packets were sent again", "lost 13 of", " and 9 of")
def losses() -> Answer:
    wire = Wire(seed=2, lose=lambda number: number % 23 == 11)
    talk(wire, requests=40)
    return joined(wire)


@prints("6 came twice")
def copies() -> Answer:
    return joined(talked(double=lambda number: number % 5 == 1 and number < 30))


@prints("B's clock is 1.75 s behind A's", "40.0 ppm slower")
def a_slow_clock() -> Answer:
    wire = Wire(seed=3)
    talk(wire, pause_ms=1200)
    return joined(wire, shown=clock(-1750, -40))


@prints(", at the same rate", "it was set by -25.0 ms")
def a_clock_that_was_set() -> Answer:
    wire = Wire(seed=3)
    talk(wire, pause_ms=1200)
    return joined(wire, shown=clock(0, 0, -25.0, int(wire.frames(True)[-1][0] * 0.5)))


@prints("packets of one direction do not show how much of that is the way")
def one_direction() -> Answer:
    wire = talked(requests=20)
    up = [[seen for seen in wire.frames(at_b) if seen[2].from_client] for at_b in (False, True)]
    return lp.join(capture(up[0]), capture(up[1]))


@prints("client 10.0.0.1 becomes 192.0.2.1", "client port 40000 becomes 50000", "server port 80 becomes 8080")
def translated() -> Answer:
    return joined(talked(), change=nat)


@prints(", and so on, server", "sequence numbers rewritten", "IP identification rewritten")
def rewritten() -> Answer:
    wire = Wire(seed=9)
    talk(wire)
    return joined(wire, change=lambda segment: other_ids(nat(other_numbers(segment))))


def other_stamps(one: Segment) -> Segment:
    """As a firewall that hides how long a host has been up."""
    ((kind, value),) = one.options
    mine, echo = (int.from_bytes(value[at : at + 4], "big") for at in (0, 4))
    moved = b"".join(((n + 77_000) % 2**32).to_bytes(4, "big") for n in (mine, echo))
    return replace(one, options=((kind, moved),))


@prints("time stamps rewritten")
def time_stamps_rewritten() -> Answer:
    return joined(talked(), change=other_stamps)


@prints("segments merged or cut (offload)")
def offloaded() -> Answer:
    wire = talked(size=8000)
    return lp.join(capture(wire.frames(False)), capture(merged(wire.frames(True))))


def with_options(*options: tuple[int, bytes]) -> Callable[[Segment], Segment]:
    """Another SYN's options."""
    return lambda one: replace(one, options=options) if "S" in one.flags else replace(one, options=())


@prints("MSS 1460 becomes 1380", "window scale 7 becomes none", "option SACK stripped", "option time stamps stripped")
def clamped() -> Answer:
    wire = talked()
    here = with_options((2, b"\x05\xb4"), (3, b"\x07"), (4, b""), (8, bytes(8)))
    there = with_options((2, b"\x05\x64"))
    a, b = ([(t, n, change(one)) for t, n, one in wire.frames(at_b)] for at_b, change in ((False, here), (True, there)))
    return lp.join(capture(a), capture(b))


@prints("A's capture lacks", "of ", "it is not known whether they were lost")
def captures_with_holes() -> Answer:
    wire = talked(requests=30, lose=lambda number: number in (40, 80))
    kept = [[seen for n, seen in enumerate(wire.frames(at_b)) if n % 9 != 4] for at_b in (False, True)]
    return lp.join(capture(kept[0]), capture(kept[1]))


@prints("a proxy between (no packet is the same, requests are)", "± 2.61 on the way")
def through_a_proxy() -> Answer:
    a, back = proxied(1)
    return lp.join(a, capture(back.frames(True), clock=clock(-2200, 30)))


@prints("both sides of a proxy, 40 exchanges with the request behind it", "one capture, one clock", "in the proxy")
def beside_a_proxy() -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        return lp.join(one_file(*proxied(1), Path(folder)))


@prints("Most of the time is spent in the proxy, or between it and the captured host.")
def beside_a_proxy_before_a_quick_server() -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        return lp.join(one_file(*proxied(1, pauses_ms=(0.1, 0.4)), Path(folder)))


def in_a_row(wire: Wire, further_ms: float) -> Answer:
    """A third point so much behind the second."""
    gap = int(further_ms * MS)
    behind = [(time + gap * (1 if one.from_client else -1), number, one) for time, number, one in wire.at_b]
    points = wire.frames(False), wire.frames(True), sorted(behind, key=lambda seen: seen[0])
    return lp.join(*(capture(frames) for frames in points))


@prints("at all 3 points", "Most of the time is spent between", "between <bytes> and <bytes>")
def three_points() -> Answer:
    return in_a_row(talked(there_ms=20.0, back_ms=20.0, pause_ms=2.0), 0.1)


@prints("Most of the time is spent beyond <bytes>.", "beyond <bytes>")
def three_points_before_a_slow_program() -> Answer:
    return in_a_row(talked(pause_ms=60.0), 1.0)
