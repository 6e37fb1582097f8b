"""Forty simulated transfers, each captured at both ends: are limit, rate, idle round trip and standing queue right?

Delays of 2 to 150 ms, lines of 2 to 200 Mbit/s, windows and send buffers of 0.1 to 5 times what the path holds, losses
of 0.3 to 3 %, slow readers and writers, no window scaling, pacing.
"""

from __future__ import annotations

from collections import Counter

import pytest
from transfer_simulator import SIZE, Transfer

import latpcap as lp

Made = tuple[Transfer, str, float | None, float | None]
"""What moves, what limits it, its rate in Mbit/s and its standing queue in ms, where these are known."""
FAR = {"sender_program", "sender_buffer", "pacing", "http2_window"}
"""What cannot be told apart away from the sender: there the answer is `suspected`."""


def windowed() -> list[Made]:
    """A window against a line: below what the path holds the window limits, above it the line, behind a queue."""
    found: list[Made] = []
    for line, rtt in ((2, 40), (5, 150), (10, 10), (10, 100), (50, 30), (200, 5)):
        holds = line * 1e6 / 8 * rtt / 1e3
        for share in (0.3, 0.6, 2.0, 4.0):
            window = int(holds * share)
            if window < 6 * SIZE:
                continue
            moved = max(int(holds * 30), 400_000)
            full = share > 1
            rate = float(line) if full else window // SIZE * SIZE * 8 / rtt / 1e3
            queue = (share - 1) * rtt if full else None
            made = Transfer(line=line, rtt=rtt, window=window, bytes=moved)
            found.append((made, "line" if full else "receiver_window", rate, queue))
    return found


def others() -> list[Made]:
    """What is not of the line."""
    found: list[Made] = []
    for rtt in (2, 20, 80, 150):
        found.append(
            (Transfer(scaled=False, rtt=rtt, bytes=2_500_000), "receiver_window", 65_535 * 8 / rtt / 1e3, None)
        )
    for rate, rtt in ((4, 10), (9, 30), (20, 60)):
        window = max(131_072, int(rate * rtt * 125 * 1.5))
        made = Transfer(window=window, reader=rate, rtt=rtt, bytes=rate * 300_000)
        found.append((made, "receiver_program", float(rate), None))
    for size, each, rtt in ((16_000, 20.0, 10), (64_000, 50.0, 30), (100_000, 200.0, 40)):
        made = Transfer(writes=(size, each), rtt=rtt, bytes=size * 30)
        found.append((made, "sender_program", size * 8 / each / 1e3, None))
    for buffer, rtt in ((20_000, 10), (40_000, 30), (60_000, 100)):
        made = Transfer(buffer=buffer, rtt=rtt, bytes=buffer * 40)
        found.append((made, "sender_buffer", None, None))
    for pace, rtt in ((3, 10), (5, 30), (20, 60)):
        found.append((Transfer(pace=pace, rtt=rtt, bytes=pace * 300_000), "pacing", float(pace), None))
    for each, rtt in ((33, 10), (60, 30), (150, 20), (300, 80)):
        made = Transfer(lost=tuple(range(each + 30, 1300, each)), rtt=rtt, bytes=1_900_000)
        found.append((made, "congestion", None, None))
    return found


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, Made, dict[str, object]]]:
    """The row of `transfers` of each, at each end."""
    found = []
    for made in (*windowed(), *others()):
        for end, capture in made[0].captures().items():
            (row,) = lp.read(capture).arrow("transfers").to_pylist()
            found.append((end, made, row))
    assert len(found) >= 80
    return found


@pytest.mark.parametrize(("end", "share"), [("sender", 0.95), ("receiver", 0.9)])
def test_the_limit_is_right_and_never_wrong_and_sure(
    rows: list[tuple[str, Made, dict[str, object]]], end: str, share: float
) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for _, (made, limit, _, _), row in (one for one in rows if one[0] == end):
        far = end == "receiver" and limit in FAR
        right = row["limited_by"] in FAR if far else row["limited_by"] == limit
        counts["right" if right else "wrong"] += 1
        if not right or (far and row["grade"] != "suspected"):
            wrong.append((limit, row["limited_by"], row["grade"], made))
    assert counts["right"] >= share * counts.total(), wrong
    assert not [one for one in wrong if one[2] == "proven"], wrong


def test_rates_and_round_trips(rows: list[tuple[str, Made, dict[str, object]]]) -> None:
    """The rate has slow start in it, the mean of the queue the time in which it fills."""
    off = []
    for end, (made, limit, rate, queue), row in rows:
        assert row["rtt_idle_ms"] == pytest.approx(made.rtt, abs=1.1, rel=0.02), (end, made)
        measured = row["burst_mbit"] if limit == "line" else row["rate_mbit"]
        if rate is not None and measured != pytest.approx(rate, rel=0.08):
            off.append((end, "rate", measured, rate, made))
        if queue is not None and row["queue_ms"] != pytest.approx(queue, rel=0.3):
            off.append((end, "queue", row["queue_ms"], queue, made))
    assert not off
