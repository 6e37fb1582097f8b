"""Sockets of one server that differ: is every connection judged by what it shows itself?

The recorded mixtures are cases (tests/cases/mixed_*); these are simulated, with every path and point of capture.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from makepcap import Ends, pcap
from robustness import ASK, BODY, HEAD, SPLIT, mixtures, points, precision, recall, runs
from simulator import ENDS, Path, Script, record

import latpcap as lp
from latpcap.findings import socket_options


def pooled(verdict: str, **more: Any) -> dict[str, Any]:
    row = {"sender": "server", "verdict": verdict, "held": 9, "tight": 9, "refuted": 0, "opportunities": 9}
    return row | more


def test_the_option_of_several_pools() -> None:
    def state(*rows: dict[str, Any]) -> tuple[str, int, int]:
        option = socket_options.nodelay(list(rows), "server")
        return option.state, option.streams_on, option.streams_off

    on = pooled("nodelay", held=0, tight=0, refuted=9, nagle_streams=0, nodelay_streams=4)
    off = pooled("nagle", nagle_streams=2, nodelay_streams=0)
    assert state(on) == ("on", 4, 0) and state(off) == ("off", 0, 2)
    assert state(on, off) == ("mixed", 4, 2), "clients of one server"
    assert state(pooled("mixed", nagle_streams=1, nodelay_streams=5)) == ("mixed", 5, 1)
    assert state(pooled("mixed", nagle_streams=1, nodelay_streams=0)) == ("off", 0, 1), "the others' programs pause"


def test_simulated_mixtures_from_every_point() -> None:
    found: Counter[str] = Counter()
    for name, counts in runs(mixtures()[::5], (0.4, 17.0), burst_ms=0.0, seeds=1):
        assert not counts["false"], name
        found += counts
    # connections without a control group of their own are only probable beside others that have TCP_NODELAY; so are
    # those beside others that pause as long as ACKs are held: what all of them send is not as prompt as their kernel
    assert precision(found) == 1.0 and recall(found) > 0.75 and found["hit"] > 300


def test_jitter_hides_some_and_accuses_nobody() -> None:
    found: Counter[str] = Counter()
    for name, counts in runs(mixtures()[::7], (4.0,), burst_ms=12.0, seeds=1):
        assert not counts["false"], name
        found += counts
    assert found["hit"] > 0


@pytest.mark.parametrize(("burst", "most"), [(0.0, 0.0), (12.0, 0.4)])
def test_a_program_at_work_is_told_from_a_late_path(burst: float, most: float) -> None:
    # each connection has one answer whose first ACK came at once: what its program took then is not what it takes later
    firsts = (21.0, 22.0, 26.0, 30.0, 35.0, 39.0, 44.0, 46.0, 51.0)
    working = [[first, *(15.0 + (7 * n + 11 * k) % 31 for n in range(19))] for k, first in enumerate(firsts)]
    writing = [[0.0] * 20 for _ in firsts]
    for path in list(points(6.0).values())[1:]:
        wavering = replace(path, burst_ms=burst, jitter_ms=burst / 20)
        assert proven(working, wavering) <= most and proven(writing, wavering) > 0.6


def proven(pauses: list[list[float]], path: Path) -> float:
    """The share of what the server's kernel held that is proven, or more, on one connection for each list of pauses."""
    tape, truth = [], {}
    for number, before in enumerate(pauses):

        def alter(n: int, script: Script, before: list[float] = before) -> Script:
            return replace(script, answer=((0.0, HEAD), (before[n], BODY)))

        (address, port), server = ENDS.client, ENDS.server
        script = Script(ASK, SPLIT, server_think=(0.05, 14.0), alter=alter)
        made = record(script, path=path, seed=number, connections=1, ends=Ends((address, port + number), server))
        tape, truth = [*tape, *made.tape], truth | made.truth
    causes = lp.read(pcap(sorted(tape, key=lambda s: s.time_ns), nanos=True)).arrow("causes").to_pylist()
    sure = [row for row in causes if "nagle" in (row["cause"], row["parent"]) and row["confidence"] >= 0.9]
    held = sum(ms for one in truth.values() for _, ms in one.waits)
    return float(sum(row["duration_ms"] for row in sure) / held)
