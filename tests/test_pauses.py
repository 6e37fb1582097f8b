"""Clients that pause between their requests: as rows of their own, told from corks; one direction's suspicions; what a
sender's clock tells of the path.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import situations
from makepcap import Ends, Talk, answer, get, pcap, timestamps
from simulator import Path as Way
from simulator import Script, record

import latpcap as lp
from latpcap.vocabulary import STALL

HTTP = b"".join(answer(200))
LEGS = [(20.0, 0.01), (0.01, 20.0), (8.0, 12.0)]
PLACES = ["client", "server", "between"]


def asking(
    pauses: list[float], legs: tuple[float, float] = (1.0, 0.01), tick: Callable[[float], float] = float
) -> Talk:
    """Requests that are answered in 2 ms, and the client's pauses after each; `tick` moves when they leave."""
    talk = Talk(server_leg=legs[0], client_leg=legs[1])
    talk.open()
    at = 2.0
    for pause in [*pauses, 0.0]:
        talk.client(at, get())
        talk.server(at + talk.server_leg + 2.0, HTTP)
        read = at + talk.server_leg + 2.0 + talk.client_leg
        talk.client(read)
        at = tick(read + pause)
    return talk


def beside(capture: lp.Capture, method: str) -> list[dict[str, Any]]:
    return [e for e in capture.arrow("exchanges").to_pylist() if (e["protocol"], e["method"]) == ("tcp", method)]


@pytest.mark.parametrize("legs", LEGS, ids=PLACES)
def test_a_client_that_pauses_is_told_to_the_millisecond(legs: tuple[float, float]) -> None:
    capture = lp.read(pcap(asking([40.0] * 6, legs).tape))
    rows = beside(capture, "pause")
    assert [round(e["client_think_ms"], 3) for e in rows] == [40.0] * 6
    assert all(
        e["network_ms"] == pytest.approx(legs[1]) and not e["complete"] and e["latency_ms"] is None for e in rows
    )
    requests = [e for e in capture.arrow("exchanges").to_pylist() if e["protocol"] != "tcp"]
    assert [e["index"] for e in requests] == list(range(7))
    assert [(e["index"], e["end"]) for e in rows] == [(e["index"], e["start"]) for e in requests[1:]]
    assert [e["start"] for e in rows] == [e["end"] for e in requests[:-1]]
    assert "clients paused 40.0 ms between requests, 6 times: no part of a latency" in str(capture.why())
    assert capture.stream(0).why(exchange=1).to_dict()["protocol"] != "tcp"
    assert not any(
        r["kind"] == "latency" and r["cause"] == "client_think" for r in capture.arrow("findings").to_pylist()
    )


def test_one_short_pause_may_be_a_busy_hosts() -> None:
    assert beside(lp.read(pcap(asking([0.5, 30.0, 0.5]).tape)), "pause") == []
    (row,) = beside(lp.read(pcap(asking([0.5, 250.0, 0.5]).tape)), "pause")
    assert row["index"] == 2
    rows = beside(lp.read(pcap(asking([0.5, 30.0, 0.5, 0.5, 40.0, 0.5]).tape)), "pause")
    assert [(e["index"], round(e["client_think_ms"])) for e in rows] == [(2, 30), (5, 40)]


@pytest.mark.parametrize("pauses", [[19.0] * 6, [0.5] * 40 + [25.0] * 2], ids=["short", "rare"])
def test_what_is_short_or_rare_has_no_row(pauses: list[float]) -> None:
    talk = asking(pauses, (10.0, 0.01))
    assert beside(lp.read(pcap(talk.tape)), "pause") == []


def late(ms: float) -> float:
    """The first tick of 4 ms after it, and what a kernel takes from there."""
    return math.ceil(ms / 4.0) * 4.0 + 0.02


@pytest.mark.parametrize("legs", LEGS, ids=PLACES)
def test_requests_that_leave_with_the_kernels_timer_are_corked(legs: tuple[float, float]) -> None:
    """Each request waits 200 ms and until the client's next tick, whatever the capture's distance."""
    rng = random.Random(3)
    talk = asking([200.0 + rng.uniform(0.1, 3.0) for _ in range(12)], legs, late)
    rows = beside(lp.read(pcap(talk.tape)), "pause")
    assert len(rows) == 12 and all(200 <= e["cork_ms"] <= 213 and not e["client_think_ms"] for e in rows)
    found = lp.read(pcap(talk.tape)).arrow("findings").to_pylist()
    (row,) = [r for r in found if r["cause"] == "cork"]
    assert (row["owner"], row["grade"], row["streams"], row["kind"]) == ("client", "probable", 1, "setup")
    assert "cork" in str(lp.read(pcap(talk.tape)).why())


@pytest.mark.parametrize(
    ("pauses", "tick"),
    [
        pytest.param([204.0] * 20, float, id="a program that sleeps for 204 ms"),
        pytest.param([200.0] * 7, late, id="too few"),
        pytest.param([200.0, 30.0] * 12, late, id="others leave sooner"),
        pytest.param([220.0] * 20, late, id="longer than the timer"),
    ],
)
def test_a_sleeping_client_is_not_corked(pauses: list[float], tick: Callable[[float], float]) -> None:
    rng = random.Random(5)
    talk = asking([p + rng.uniform(0, 3.9) * (tick is float) for p in pauses], (1.0, 0.01), tick)
    rows = beside(lp.read(pcap(talk.tape)), "pause")
    assert rows and not any(e["cork_ms"] for e in rows)


def test_a_server_whose_answers_are_corked_is_told() -> None:
    talk = Talk(server_leg=0.01, client_leg=5.0)
    talk.open()
    at = 2.0
    for _ in range(12):
        talk.client(at, get())
        done = late(at + 200.3)
        talk.server(done, HTTP)
        talk.client(done + talk.client_leg)
        at = done + talk.client_leg + 1.3
    exchanges = lp.read(pcap(talk.tape)).arrow("exchanges").to_pylist()
    assert all(e["top_cause"] == "cork" for e in exchanges if e["complete"])


@pytest.mark.parametrize("from_client", [True, False])
@pytest.mark.parametrize("way", [Way(1.5, 0.01), Way(0.01, 1.5), Way(4.0, 4.0)], ids=PLACES)
def test_one_direction_suspects_in_the_causes_too(from_client: bool, way: Way) -> None:
    both = Script(((0.0, get()),), tuple((0.0, part) for part in answer(400)), exchanges=16)
    tape = [s for s in record(both, path=way).tape if s.from_client == from_client]
    capture = lp.read(pcap(tape))
    rows = beside(capture, "one_way")
    assert len(rows) >= 12
    mine = {e["exchange"] for e in rows}
    causes = [c for c in capture.arrow("causes").to_pylist() if c["exchange"] in mine]
    assert {c["rule"] for c in causes} == {"one_way"} and max(c["confidence"] for c in causes) <= 0.5
    held = [c for c in causes if c["cause"] == "delayed_ack"]
    assert len(held) == len(rows) and all((c["parent"], c["owner"]) == ("nagle", "client") for c in held)
    assert all(38 <= c["duration_ms"] <= 66 for c in held)


def test_both_directions_leave_nothing_to_suspect() -> None:
    capture = lp.read(pcap(situations.stall(12)[0].tape))
    assert beside(capture, "one_way") == []
    assert any(r["cause"] == STALL for r in capture.arrow("findings").to_pylist())


@pytest.mark.parametrize("from_client", [True, False])
def test_quick_answers_of_one_direction_are_not_suspected(from_client: bool) -> None:
    """A program that thinks before its answer, and answers in one piece: nobody waits for an ACK."""
    tape: list[Any] = []
    talk = Talk(server_leg=1.0, client_leg=0.01, ends=Ends(), tape=tape)
    talk.open()
    for k in range(12):
        talk.client(10.0 + 100 * k, get())
        talk.server(55.0 + 100 * k, HTTP)
        talk.client(55.1 + 100 * k)
    capture = lp.read(pcap([s for s in tape if s.from_client == from_client]))
    assert beside(capture, "one_way") == []


def timed(
    sent: Callable[[int], float], came: Callable[[int], float], leg: float, tick: float = 1.0
) -> list[dict[str, Any]]:
    """Exchanges whose answers left `sent(k)` ms after the request came and took `came(k)` ms more than the path at its
    best; the server's clock counts ticks of so many ms, in units of 1 ms.
    """
    talk = Talk(server_leg=leg, client_leg=0.01)
    talk.open()
    at = 5.0
    for k in range(24):
        talk.client(at, get(), options=[timestamps(int(at), 0)])
        left = at + leg / 2 + sent(k)
        done = left + leg / 2 + came(k)
        talk.server(done, HTTP, options=[timestamps(int(70_000 + left // tick * tick), int(at))])
        at = done + 1.37
    capture = lp.read(pcap(talk.tape))
    assert all(e["complete"] for e in capture.arrow("exchanges").to_pylist() if e["protocol"] != "tcp")
    return [e for e in capture.arrow("exchanges").to_pylist() if e["protocol"] != "tcp"]


def test_what_the_path_held_an_answer_is_not_the_servers() -> None:
    """Every eighth answer is 12 ms late though its time stamp says that it left in time; every ninth left late."""
    rows = timed(lambda k: 25.0 if k % 9 == 8 else 0.2, lambda k: 12.0 if k % 8 == 7 else 0.0, 6.0)
    for k, e in enumerate(rows):
        queued, thought = 12.0 if k % 8 == 7 else 0.0, 25.0 if k % 9 == 8 else 0.2
        assert e["queueing_ms"] == pytest.approx(queued, abs=1.01), k
        assert e["server_think_ms"] == pytest.approx(thought, abs=1.01), k
        assert e["queueing_ms"] <= queued


@pytest.mark.parametrize(
    ("leg", "late", "tick"),
    [
        pytest.param(0.01, 12.0, 1.0, id="the capture is at the server"),
        pytest.param(6.0, 2.5, 1.0, id="a tick and noise"),
        pytest.param(6.0, 0.0, 16.0, id="a coarse clock"),
    ],
)
def test_what_a_clock_cannot_tell_is_no_queue(leg: float, late: float, tick: float) -> None:
    rows = timed(lambda k: 0.2 + k % 5, lambda k: late if k % 8 == 7 else 0.0, leg, tick)
    assert not any(e["queueing_ms"] for e in rows)


def test_a_clock_that_counts_something_else_tells_nothing() -> None:
    talk = Talk(server_leg=6.0, client_leg=0.01)
    talk.open()
    for k in range(40):
        at = 5.0 + 300 * k
        talk.client(at, get(), options=[timestamps(int(at), 0)])
        late = 20.0 if k % 8 == 7 else 0.2
        talk.server(at + 6.0 + late, HTTP, options=[timestamps(int((at + 3.2) / 4), int(at))])  # HZ=250
    rows = lp.read(pcap(talk.tape)).arrow("exchanges").to_pylist()
    late = [e for e in rows if e["protocol"] != "tcp" and e["latency_ms"] > 20 and e["index"] >= 15]
    assert len(late) == 4 and not any(e["queueing_ms"] for e in late)
