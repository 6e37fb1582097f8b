"""What a fix would bring, worked out part by part: the same numbers as from whole columns."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from latpcap import spill
from latpcap.findings import fixes
from latpcap.limits import LIMITS


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are long early, so that a test need not be."""
    monkeypatch.setattr(spill, "MIN_FILE_BYTES", 64)
    monkeypatch.setattr(spill, "BLOCK", 16)


def capacity_of_events(asked: Any, answered: Any) -> tuple[float, float] | None:
    """Every request and answer one after the other, requests first where both have one instant."""
    events = sorted([(int(t), 0) for t in asked] + [(int(t), 1) for t in answered])
    waiting = busy_ns = done = left = 0
    between: list[int] = []
    last: int | None = None
    for place, (time, answer) in enumerate(events):
        if waiting >= LIMITS["busy_requests"]:
            busy_ns += time - events[place - 1][0]
            done += answer
        if answer:
            between += [time - last] if last is not None and left >= LIMITS["busy_requests"] else []
            last, left = time, waiting - 1
        waiting += -1 if answer else 1
    if done < LIMITS["busy_answers"] or busy_ns <= LIMITS["busy_share"] * (events[-1][0] - events[0][0]):
        return None
    rates = [1e9 * done / busy_ns]
    if len(between) >= LIMITS["busy_answers"] and sum(between) > 0:
        rates.append(1e9 / (sum(between) / len(between)))
    return min(rates), max(rates)


def seen(asked: Any, answered: Any, path_ms: float) -> pa.Table:
    return pa.table({"request_end": asked, "response_start": answered, "network_ms": [path_ms] * len(asked)})


@pytest.mark.parametrize("seed", range(12))
def test_capacity_is_that_of_the_events_one_by_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 400))
    asked = np.sort(random.integers(0, 40 * count, count))
    answered = asked + random.integers(0, 1 + int(random.choice([5, 300, 20_000])), count)
    exchanges = seen(asked, answered, 0.0)
    rows = np.arange(count, dtype="uint32")
    assert fixes._capacity(rows, exchanges) == capacity_of_events(asked, answered)


def test_some_of_these_have_a_capacity() -> None:
    asked = np.arange(400) // 8 * 1000
    exchanges = seen(asked, asked + np.arange(400) % 8 * 100 + 100, 0.0)
    found = fixes._capacity(np.arange(400, dtype="uint32"), exchanges)
    assert found is not None and found == capacity_of_events(asked, exchanges["response_start"].to_numpy())


def test_pauses_are_those_between_a_streams_exchanges_in_order_of_time() -> None:
    random = np.random.default_rng(3)
    stream, start = random.integers(0, 9, 500).astype("uint32"), random.permutation(500) * 1000
    end = start + random.integers(0, 3000, 500)
    wanted = []
    for one in range(9):
        mine = sorted((start[i], end[i]) for i in np.flatnonzero(stream == one))
        wanted += [(b[0] - a[1]) / 1e6 for a, b in pairwise(mine)]
    pauses = fixes._pauses(stream, start, end)
    assert pauses.tolist() == wanted
    assert fixes._median(pauses) == np.median(wanted) and fixes._median(pauses[1:]) == np.median(wanted[1:])
    assert fixes._percentile(pauses, 0.1) == sorted(wanted)[49]


def test_what_is_on_its_way_waits_for_nobody() -> None:
    """Eight clients 5 ms away that ask one after the other: the server has one request at a time."""
    asked = np.arange(400) * 1_000_000
    rows = np.arange(400, dtype="uint32")
    answered = asked + 5_400_000
    assert fixes._capacity(rows, seen(asked, answered, 0.0)) is not None
    assert fixes._capacity(rows, seen(asked, answered, 5.0)) is None
    # no path is longer than its answer took, and unknown ones are none
    assert fixes._capacity(rows, seen(asked, answered, 99.0)) is None
    unknown = seen(asked, answered, 5.0).set_column(2, "network_ms", pa.array([None] * 400, "float64"))
    assert fixes._capacity(rows, unknown) == fixes._capacity(rows, seen(asked, answered, 0.0))


def test_the_server_is_as_quick_as_without_the_path() -> None:
    """The same bursts of eight, seen at the server and 5 ms from it."""
    asked = np.arange(400) // 8 * 20_000_000
    answered = asked + (np.arange(400) % 8 + 1) * 90_000
    rows = np.arange(400, dtype="uint32")
    near = fixes._capacity(rows, seen(asked, answered, 0.0))
    assert near is not None
    assert fixes._capacity(rows, seen(asked - 2_500_000, answered + 2_500_000, 5.0)) == near


@pytest.mark.parametrize(("queue", "goes"), [(0.0, [0, 44, 64]), (12.0, [0, 44, 52]), (90.0, [0, 44, 44])])
def test_what_a_wait_takes_beyond_the_shortest_may_be_a_queue(queue: float, goes: list[float]) -> None:
    waits = np.array([0.0, 44.0, 64.0])
    shortest = fixes._shortest(waits)
    assert shortest == 44 and fixes._shortest(waits[:1]) == 0
    assert fixes._beyond_queue(waits, shortest, queue).tolist() == goes


@pytest.mark.parametrize(
    ("spans", "most"),
    [
        ([(0, 1, 9)], 1),
        ([(0, 1, 9), (1, 9, 12), (2, 12, 20)], 1),
        ([(0, 1, 9), (1, 8, 12)], 2),
        ([(0, 1, 2), (0, 8, 9), (1, 4, 5)], 2),
        ([(n, n % 3, 90) for n in range(40)], 40),
    ],
)
def test_streams_that_follow_each_other_are_not_in_use_at_once(spans: list[tuple[int, int, int]], most: int) -> None:
    stream, start, end = (np.array(column) for column in zip(*spans, strict=True))
    assert fixes._max_concurrent(stream.astype("uint32"), start, end) == most


def test_a_loop_knows_how_late_its_clients_ask_again() -> None:
    """Two clients, one prompt and one that asks 3 ms later each time."""
    start = np.array([n * 50_000_000 + stream * 3_000_000 for n in range(20) for stream in (0, 1)])
    start[1::2] += np.arange(20) * 3_000_000
    exchanges = pa.table(
        {
            "stream": pa.array([0, 1] * 20, "uint32"),
            "start": start,
            "end": np.where(np.arange(40) % 2, start + 40_000_000, start + 49_000_000),
            "request_end": start,
            "response_start": start + 1_000_000,
            "network_ms": [0.0] * 40,
        }
    )
    item: Any = SimpleNamespace(server=SimpleNamespace(rows=np.arange(40, dtype="uint32")))
    loop = fixes._Loop.of(item, exchanges)
    assert loop is not None and loop.closed and loop.clients == 2
    assert (loop.pause_ms, loop.late_ms) == pytest.approx(((1.0 + 13.0) / 2, 6.0))


def promised(
    monkeypatch: pytest.MonkeyPatch,
    capacity: tuple[float, float] | None,
    hidden_ms: float = 0.0,
    turns: tuple[float, bool] = (0.5, True),
) -> fixes.Gain:
    """Ten clients that wait 50 ms now, 1 ms at best and 2 ms at worst."""
    left, worst = np.full(40, 1.0), np.full(40, 2.0)
    loop = fixes._Loop(10, 0.0, 0.0, 200.0, closed=True, capacity=capacity)
    monkeypatch.setattr(fixes, "_of_stall", lambda *_: (left, worst, left, hidden_ms))
    monkeypatch.setattr(fixes, "_turns", lambda *_: turns)
    monkeypatch.setattr(fixes._Loop, "of", lambda *_: loop)
    server = SimpleNamespace(cut=False, rows=np.arange(40, dtype="uint32"), latency=np.full(40, 50.0))
    item: Any = SimpleNamespace(server=server, cause="nagle", owner="server")
    found = fixes.gain(item, [item], pa.table({}), pa.table({}))
    assert found is not None
    return found


@pytest.mark.parametrize(("hidden_ms", "high", "limit"), [(0.0, 5.5, "server"), (9.0, 14.5, fixes.NOT_SERVER)])
def test_the_capacity_says_nothing_of_work_that_the_wait_hides(
    monkeypatch: pytest.MonkeyPatch, hidden_ms: float, high: float, limit: str
) -> None:
    """Answers that begin 2,000 times a second: 5 ms to the first byte at most, and what follows it."""
    found = promised(monkeypatch, (2000.0, 4000.0), hidden_ms)
    assert found.high_ms == pytest.approx(high) and found.limit == limit
    least = 10 * 1000 / high if hidden_ms else 2000.0
    assert found.factor_low == pytest.approx(least / 200.0)


def test_clients_of_a_slow_server_wait_for_each_other_then(monkeypatch: pytest.MonkeyPatch) -> None:
    assert promised(monkeypatch, None, turns=(0.1, True)).high_ms == 2.0
    assert promised(monkeypatch, None, turns=(0.5, True)).high_ms == pytest.approx(10 * 0.5 * 1.1)
    assert promised(monkeypatch, None, turns=(9.0, True)).high_ms == 50.0, "no longer than now"


def test_the_median_is_of_those_that_are_served_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten clients of a server that gives 4,000 answers a second have one every 2.5 ms, if each has its turn."""
    busy = (2000.0, 4000.0)
    assert promised(monkeypatch, busy, turns=(0.25, True)).low_ms == 1.0
    assert promised(monkeypatch, busy, turns=(0.25, False)).low_ms == 0.25
    assert promised(monkeypatch, None, turns=(0.25, False)).low_ms == 0.25


@pytest.mark.parametrize(("order", "in_turn"), [((0, 1, 2, 3), True), ((0, 3, 1, 2), False)])
def test_answers_out_of_turn_and_how_far_apart_they_are(order: tuple[int, ...], in_turn: bool) -> None:
    """Four requests at once every 100 ms, answered 2 ms apart: three of the four leave others waiting."""
    asked = np.array([n * 100_000_000 + k * 1000 for n in range(10) for k in range(4)])
    answered = np.array([n * 100_000_000 + (order[k] + 1) * 2_000_000 for n in range(10) for k in range(4)])
    rows = np.arange(40, dtype="uint32")
    assert fixes._turns(rows, seen(asked, answered, 0.0)) == (pytest.approx(2.0), in_turn)
    few = rows[:8]
    assert fixes._turns(few, seen(asked[:8], answered[:8], 0.0))[0] == 0.0


@pytest.mark.parametrize(("swapped", "in_turn"), [(3, True), (4, False)])
def test_one_in_ten_that_wait_together_may_be_overtaken(swapped: int, in_turn: bool) -> None:
    """Ten groups of four requests: three of each may be overtaken by the next, and one is where two are swapped."""
    orders = [(0, 1, 3, 2) if n < swapped else (0, 1, 2, 3) for n in range(10)]
    asked = np.array([n * 100_000_000 + k * 1000 for n in range(10) for k in range(4)])
    answered = np.array([n * 100_000_000 + (k + 1) * 2_000_000 for n, order in enumerate(orders) for k in order])
    assert fixes._turns(np.arange(40, dtype="uint32"), seen(asked, answered, 0.0))[1] is in_turn
