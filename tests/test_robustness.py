"""Do verdicts stand up to decoys, jitter and holes? A few simulated situations of each kind; CI runs the whole grid."""

from __future__ import annotations

from collections import Counter

import pytest
import robustness
from robustness import Situation, decoys, holes, judged, points, precision, recall, runs, stalls
from simulator import Host, Path, Script, record

import latpcap as lp
from latpcap import findings
from latpcap.findings import quality
from latpcap.vocabulary import STALL


def total(situations: list[Situation], **how: float) -> Counter[str]:
    found: Counter[str] = Counter()
    for _, counts in runs(
        situations, (0.4, 40.0), seeds=1, burst_ms=how.get("burst", 0.0), missing=how.get("lost", 0.0)
    ):
        found += counts
    return found


@pytest.mark.parametrize("burst", [0.0, 12.0])
def test_stalls_are_proven_from_every_point(burst: float) -> None:
    found = total(stalls()[::3], burst=burst)
    assert found["hit"] > 1000
    assert precision(found) >= 0.99 and recall(found) >= 0.97, found


@pytest.mark.parametrize("burst", [0.0, 12.0])
def test_decoys_are_never_proven(burst: float) -> None:
    for name, counts in runs(decoys()[:: 3 if burst else 2], (0.4, 40.0), burst_ms=burst, seeds=1):
        assert counts["false"] == 0, name


def test_missing_frames_make_no_false_verdict() -> None:
    found = total([*stalls()[:2], *decoys()[2:5]], lost=0.07)
    assert found["hit"] + found["probable"] > 100
    assert precision(found) >= 0.99, found


def test_missing_frames_lower_the_confidence() -> None:
    made = stalls()[0].record(points(4.0)["server"], seed=3)
    whole, cut = (lp.read(robustness.pcap(tape)) for tape in (made.tape, holes(made.tape, 0.10, 3)))
    assert quality.judge(findings.FinderTables(whole.arrow)) == []
    assert {"capture_gap"} <= {c.check for c in quality.judge(findings.FinderTables(cut.arrow))}
    sure = [max(r["confidence"] for r in c.arrow("findings").to_pylist() if r["cause"] == STALL) for c in (whole, cut)]
    assert sure[1] < sure[0]


def test_the_timer_is_fitted() -> None:
    """Whatever timer and tick the receiver has, as long as its holds tell."""
    for timer, tick in ((40.0, 4.0), (40.0, 10.0), (100.0, 10.0), (200.0, 10.0)):
        made = record(
            Script(robustness.ASK, robustness.SPLIT), Host(delack_ms=timer, tick_ms=tick), path=Path(1.0, 0.01)
        )
        first = lp.read(robustness.pcap(made.tape)).arrow("findings").to_pylist()[0]
        assert (first["cause"], first["timer_ms"], first["tick_ms"]) == (STALL, timer, tick)
        assert first["tick_p"] < 1e-6


def test_the_simulator_tells_the_truth() -> None:
    """Its own account: with Nagle and a held ACK every exchange but the first ones waits, with TCP_NODELAY none."""
    both = Script(robustness.ASK, robustness.SPLIT)
    waits = record(both).truth
    assert sum(t.stalled for t in waits.values()) == 57 and all(39 < w < 50 for t in waits.values() for _, w in t.waits)
    assert not any(t.stalled for t in record(both, server=Host(nodelay=True)).truth.values())
    assert not any(t.stalled for t in record(both, Host(quickack=True)).truth.values())
    assert [s.frame() for s in record(both, seed=5).tape] == [s.frame() for s in record(both, seed=5).tape]
    assert judged(record(both).tape, waits)["hit"] == 57
