"""Do `events`, `streams` and the flow graph's text agree with tshark 4.0? Segment by segment; skipped without tshark.

What may differ is in docs/wireshark-parity.md; nothing of it is in the captures here.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from makepcap import EPOCH_NS, Segment, pcap
from randomtalk import crowd
from randomwire import STEPS, capture
from tsharkfacts import FLAGS, differences, needs_tshark, of_latpcap

import latpcap as lp

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_pcaps"
CAPTURES = sorted(SAMPLES.rglob("*.pcap"))
CASES = sorted((ROOT / "tests" / "cases").glob("*/capture.pcap"))
FRAMES = 4000
FIXED = [1, 2, 3]
FRESH = random.SystemRandom().randrange(2**32)


def check(path: Path, data: bytes | None = None, why: str = "") -> None:
    if data is not None:
        path.write_bytes(data)
    wrong = differences(path, with_text=data is None)
    assert not wrong, f"{why or path}: {len(wrong)} differences from tshark (ours first):\n" + "\n".join(wrong[:5])


@needs_tshark
@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.name)
def test_samples(path: Path) -> None:
    check(path)


@needs_tshark
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.parent.name)
def test_cases(path: Path) -> None:
    check(path)


@needs_tshark
@pytest.mark.parametrize("seed", [1, 2])
def test_random_conversations(seed: int, tmp_path: Path) -> None:
    """Losses, repeats, closed windows, sequence numbers that wrap, ports that are used again."""
    check(tmp_path / "crowd.pcap", pcap(crowd(seed, 60, ports=45)))


@needs_tshark
@pytest.mark.parametrize("seed", [*FIXED, pytest.param(FRESH, id="fresh")])
def test_random_captures(seed: int, tmp_path: Path) -> None:
    """`fresh` is another one in every run; a failure says how to make it again."""
    for connections in (3, 7, 11):
        again = f"randomwire.capture({seed}, {FRAMES}, connections={connections})"
        check(tmp_path / "random.pcap", capture(seed, FRAMES, connections), again)


@needs_tshark
def test_more_unacknowledged_than_are_remembered(tmp_path: Path) -> None:
    """Wireshark keeps 10,000 segments a direction."""
    tape = [Segment(True, "A", 1000 + i, 500, b"x", EPOCH_NS + i * 1000) for i in range(10_010)]
    tape += [Segment(True, "FA", 11_010, 500, b"", EPOCH_NS + 10**9)]
    tape += [Segment(False, "A", 500, 1000 + n, b"", EPOCH_NS + 2 * 10**9 + n) for n in (5, 9_999, 10_005, 10_011)]
    tape += [Segment(True, "A", 11_011, 500, b"y", EPOCH_NS + 3 * 10**9)]
    check(tmp_path / "many.pcap", pcap(tape, nanos=True))


def test_random_captures_hold_every_fact(tmp_path: Path) -> None:
    """A generator that lost a situation would prove nothing about it."""
    rows = [row for seed in FIXED for row in of_latpcap(lp.read(capture(seed, FRAMES)))]
    for fact in [*FLAGS, "dsack", "sack", "mss", "wscale", "tsval", "acks_frame", "bytes_in_flight", "push_bytes_sent"]:
        assert sum(bool(row[fact]) for row in rows) >= 5, fact
    assert len({row["src"] for row in rows}) >= 8
    assert any(":" in row["src"] for row in rows) and any(row["time_delta_ms"] < 0 for row in rows)
    assert any("SYN" in row["flags"] and row["len"] for row in rows)
    assert len(STEPS) == len({step for _, step in STEPS})
