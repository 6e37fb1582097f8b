"""Sockets of one server that differ: is every connection judged by what it shows itself?

The recordings are real (tests/recorded/mixed); the simulated mixtures have every path and point of capture.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from robustness import mixtures, precision, recall, runs

import latpcap as lp
from latpcap.findings import sockets
from latpcap.vocabulary import PROVEN, STALL

HERE = Path(__file__).with_name("recorded") / "mixed"
CAPTURES = [f"{name}-{end}" for name in ("some", "pauses", "ticks") for end in ("client", "server")]


def stalls(name: str) -> tuple[Counter[int], Counter[int]]:
    """Proven and other stalls by the client's port."""
    capture = lp.read(HERE / f"{name}.pcap")
    ports = {s["stream"]: s["client_port"] for s in capture.arrow("streams").to_pylist()}
    stream = {e["exchange"]: e["stream"] for e in capture.arrow("exchanges").to_pylist()}
    proven: Counter[int] = Counter()
    other: Counter[int] = Counter()
    for row in capture.arrow("causes").to_pylist():
        if row["cause"] == "delayed_ack" and row["parent"] == "nagle":
            (proven if row["confidence"] >= PROVEN else other)[ports[stream[row["exchange"]]]] += 1
    return proven, other


@pytest.mark.parametrize("name", CAPTURES)
def test_only_sockets_with_nagle_are_accused(name: str) -> None:
    kinds = json.loads((HERE / f"{name.partition('-')[0]}.json").read_text())
    held = {int(port) for port, (nodelay, _, _) in kinds.items() if not nodelay}
    proven, other = stalls(name)
    assert set(proven) | set(other) <= held
    if name.startswith("some"):
        assert len(held) == 3 and proven.total() >= 20 and (proven + other).total() >= 34


def test_the_finding_says_on_how_many() -> None:
    capture = lp.read(HERE / "some-server.pcap")
    [row] = [r for r in capture.arrow("findings").to_pylist() if r["cause"] == STALL]
    assert (row["grade"], row["streams"], row["nodelay"]) == ("proven", 3, "mixed")
    assert (row["nodelay_streams_on"], row["nodelay_streams_off"]) == (3, 3)
    assert row["rival_lost"].startswith("on 3 of 6 connections; ")
    assert "server TCP_NODELAY mixed (off on 3 of 6 connections)" in str(capture.why())


def test_a_program_on_the_receivers_tick_is_no_more_than_probable() -> None:
    for end in ("client", "server"):
        [row] = lp.read(HERE / f"ticks-{end}.pcap").arrow("findings").to_pylist()
        assert (row["cause"], row["grade"], row["nodelay"]) == ("server_think", "probable", "on")
        assert row["rival_lost"].startswith("not ruled out: ")


def pooled(verdict: str, **more: Any) -> dict[str, Any]:
    row = {"sender": "server", "verdict": verdict, "held": 9, "tight": 9, "refuted": 0, "opportunities": 9}
    return row | more


def test_the_option_of_several_pools() -> None:
    def state(*rows: dict[str, Any]) -> tuple[str, int, int]:
        option = sockets.nodelay(list(rows), "server")
        return option.state, option.streams_on, option.streams_off

    on = pooled("nodelay", held=0, tight=0, refuted=9, nagle_streams=0, nodelay_streams=4)
    off = pooled("nagle", nagle_streams=2, nodelay_streams=0)
    assert state(on) == ("on", 4, 0) and state(off) == ("off", 0, 2)
    assert state(on, off) == ("mixed", 4, 2), "clients of one server"
    assert state(pooled("mixed", nagle_streams=1, nodelay_streams=5)) == ("mixed", 5, 1)
    assert state(pooled("mixed", nagle_streams=1, nodelay_streams=0)) == ("off", 0, 1), "the others' programs pause"
    assert state(pooled("nagle"), pooled("open")) == ("off", 0, 0), "stored by an older version"


def test_simulated_mixtures_from_every_point() -> None:
    found: Counter[str] = Counter()
    for name, counts in runs(mixtures()[::5], (0.4, 17.0), burst_ms=0.0, seeds=1):
        assert not counts["false"], name
        found += counts
    assert recall(found) == precision(found) == 1.0 and found["hit"] > 300


def test_jitter_hides_some_and_accuses_nobody() -> None:
    found: Counter[str] = Counter()
    for name, counts in runs(mixtures()[::7], (4.0,), burst_ms=12.0, seeds=1):
        assert not counts["false"], name
        found += counts
    assert found["hit"] > 0
