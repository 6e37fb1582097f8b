"""One direction of a talk: are stalls suspected, and pauses left alone where the peer's clock gives them away?"""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
import robustness
from makepcap import Segment, pcap, timestamps
from robustness import NODELAY, Situation, pause
from simulator import Host, Path, Script

import latpcap as lp

STALL = Situation("stall", Script(robustness.ASK, robustness.SPLIT))
PLACES = {"client": Path(0.005, 1.0), "server": Path(1.0, 0.005), "middle": Path(1.0, 1.0)}
SIDES = [True, False]


def suspects(tape: list[Segment], client: bool) -> int:
    capture = lp.read(pcap([s for s in tape if s.from_client == client], nanos=True))
    found = [e for e in capture.arrow("gaps").to_pylist() if e["kind"] == "one_way"]
    rows = [r for r in capture.arrow("causes").to_pylist() if r["rule"] == "one_way"]
    assert {r["gap"] for r in rows} == {e["gap"] for e in found}
    assert all(r["confidence"] <= 0.5 for r in rows)
    return len(found)


def slower(tape: list[Segment], ticks: int) -> list[Segment]:
    """With clocks that tick every so many ms."""
    out = []
    for s in tape:
        both = next(struct.unpack("!II", value) for kind, value in s.options if kind == 8)
        options = tuple(o for o in s.options if o[0] != 8)
        out.append(replace(s, options=(*options, timestamps(*(t // ticks for t in both)))))
    return out


@pytest.mark.parametrize("client", SIDES, ids=["client's packets", "server's packets"])
@pytest.mark.parametrize("place", PLACES)
def test_stalls_are_suspected(place: str, client: bool) -> None:
    made = STALL.record(PLACES[place], seed=2)
    there = sum(t.stalled for t in made.truth.values())
    assert there > 50 and suspects(made.tape, client) >= 0.9 * there


@pytest.mark.parametrize("client", SIDES, ids=["client's packets", "server's packets"])
def test_pauses_that_the_acks_move_beside_are_none(client: bool) -> None:
    """But for connections on which the holds happen to be alike: the pauses' rhythm may keep in step with the timer."""
    counts = [
        suspects(Situation("pause", pause(ms), server=NODELAY).record(PLACES["middle"], seed=2).tape, client)
        for ms in (44.0, 45.0, 46.0, 47.0, 48.0, 55.0)
    ]
    assert counts.count(0) >= 4 and sum(counts) < 0.15 * len(counts) * 60, counts


def test_holds_that_are_all_alike_tell_nothing() -> None:
    """Where the receiver's timer has no grid that the pauses could cross, a pause stays suspected."""
    same = Host(tick_ms=0.01)
    made = Situation("pause", pause(46.0), client=same, server=NODELAY).record(PLACES["middle"], seed=2)
    assert suspects(made.tape, client=False) > 40


def test_a_clock_of_another_rate_is_not_asked() -> None:
    made = Situation("pause", pause(250.0), client=Host(delack_ms=200.0), server=NODELAY).record(
        PLACES["middle"], seed=2
    )
    assert suspects(made.tape, client=False) == 0, "too long for a suspicion"
    stalled = STALL.record(PLACES["middle"], seed=2)
    assert suspects(slower(stalled.tape, 2), client=False) >= 40
