"""Is every proven stall in its three frames? A second judge that sees nothing but the rows of `events` that the verdict
names, and the stream's legs, derives Nagle and the delayed ACK anew. It knows no pool, no step and no exchange.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import latpcap as lp

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = sorted([*ROOT.glob("sample_pcaps/**/*.pcap*"), *ROOT.glob("tests/cases/*/capture.*")])
HELD_MS = 25.0
LATE_MS = 25.0
JITTER_LATE_MS = 60.0
"""Of a line that delays each packet by 6 ms on average, one behind the other: the ACK and the segment together."""
EARLY_SHARE = 0.25
"""A path that wavers may bring the freed segment this much of a leg earlier."""


def objection(
    small: dict[str, Any],
    ack: dict[str, Any],
    freed: dict[str, Any],
    stream: dict[str, Any],
    held_ms: float = HELD_MS,
    late_ms: float = LATE_MS,
) -> str:
    """Why these three frames are no Nagle and delayed ACK; empty where they are."""
    sender, receiver = ("client", "server") if small["from_client"] else ("server", "client")
    options = [m for m in (stream["client_mss"], stream["server_mss"]) if m is not None]
    mss = min(options, default=1460) - (12 if stream["timestamps"] else 0)
    to_sender, to_receiver = stream[f"{sender}_rtt_ms"], stream[f"{receiver}_rtt_ms"]
    held = (ack["ns"] - small["ns"]) / 1e6 - to_receiver
    late = (freed["ns"] - ack["ns"]) / 1e6 - to_sender
    end = small["seq"] + small["len"]
    checks = {
        "not one connection": len({small["stream"], ack["stream"], freed["stream"]}) == 1,
        "not in order": small["frame"] < ack["frame"] < freed["frame"],
        "not one sender": small["from_client"] == freed["from_client"] != ack["from_client"],
        "the first is no small segment": small["len"] > 0 and small["len"] % mss != 0,
        "the second is no small segment": freed["len"] > 0 and freed["len"] % mss != 0,
        # full ones go, whatever is not acknowledged
        "bytes lie between": freed["seq"] >= end and not (freed["seq"] - end) % mss,
        "the ACK carries data": ack["len"] == 0 and "ACK" in ack["flags"] and "FIN" not in ack["flags"],
        "the ACK does not cover the first": ack["ack"] >= end,
        "the ACK covers what was held": ack["ack"] < freed["seq"] + freed["len"],
        "repeated": not (small["retransmission"] or freed["retransmission"]),
        "the ACK was not held": held >= held_ms,
        "freed before the ACK came": late >= -max(0.1, EARLY_SHARE * to_sender),
        "freed long after the ACK came": late <= late_ms,
        # of a segment beyond what was acknowledged the stamp is not kept (RFC 7323, 4.3)
        "freed without the ACK": freed["tsecr"] is None
        or ack["seq"] > small["ack"]
        or (freed["tsecr"] - ack["tsval"]) % 2**32 < 2**31,
    }
    return next((why for why, holds in checks.items() if not holds), "")


def verdicts(capture: lp.Capture) -> list[tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]]:
    """Each proven stall's row, its three events and its stream."""
    rows = [c for c in capture.arrow("causes").to_pylist() if c["cause"] == "delayed_ack" and c["confidence"] >= 0.9]
    if not rows:
        return []
    table = capture.arrow("events")
    events = dict(zip(table["frame"].to_pylist(), table.to_pylist(), strict=True))
    for frame, ns in zip(events, table["time"].cast("int64").to_pylist(), strict=True):
        events[frame]["ns"] = ns
    streams = {s["stream"]: s for s in capture.arrow("streams").to_pylist()}
    best: dict[tuple[str, str, str], float] = {}
    legs = [
        (s, (s["client"], s["server"], leg)) for s in streams.values() for leg in ("client_rtt_ms", "server_rtt_ms")
    ]
    for stream, leg in legs:
        if stream[leg[-1]] is not None:
            best[leg] = min(best.get(leg, stream[leg[-1]]), stream[leg[-1]])
    for stream, leg in legs:  # the path's legs: of one connection all answers may have been late
        stream[leg[-1]] = best.get(leg)
    found = []
    for row in rows:
        three = [events[frame] for frame in row["evidence"]]
        found.append((row, three, streams[three[0]["stream"]]))
    return found


@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_frames_alone_say_the_same(path: Path) -> None:
    late = JITTER_LATE_MS if path.parent.name.startswith("jitter_") else LATE_MS
    for row, (small, ack, freed), stream in verdicts(lp.read(path)):
        assert objection(small, ack, freed, stream, HELD_MS, late) == "", (row["exchange"], row["evidence"])
        if row["owner"] == "backend":  # the verdict of a request inside this one, on its own connection
            assert row["parent"] == "server_think"
            continue
        assert row["parent"] == "nagle"
        assert row["owner"] == ("server" if small["from_client"] else "client"), "who held the ACK"


def test_there_is_much_to_verify_and_the_verifier_can_object() -> None:
    stalls = [v for path in CAPTURES for v in verdicts(lp.read(path))]
    assert len(stalls) > 900
    _, (small, ack, freed), stream = stalls[0]
    assert objection(small, freed, ack, stream) == "not in order"
    assert objection(small, ack, freed | {"seq": freed["seq"] + 1}, stream) == "bytes lie between"
    assert objection(small, ack | {"ns": small["ns"] + 20_000_000}, freed, stream) == "the ACK was not held"
    assert objection(small, ack, freed | {"ns": ack["ns"] - 10_000_000}, stream) == "freed before the ACK came"
    assert objection(small | {"len": 1460}, ack, freed, stream) != ""
    stalls = [s for s in stalls if s[1][2]["tsecr"] is not None and s[1][1]["seq"] <= s[1][0]["ack"]]
    _, (small, ack, freed), stream = stalls[0]
    assert objection(small, ack, freed | {"tsecr": ack["tsval"] - 1}, stream) == "freed without the ACK"
