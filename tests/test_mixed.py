"""Sockets of one server that differ: is every connection judged by what it shows itself?

The recorded mixtures are cases (tests/cases/mixed_*); these are simulated, with every path and point of capture.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from robustness import mixtures, precision, recall, runs

from latpcap.findings import sockets


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
