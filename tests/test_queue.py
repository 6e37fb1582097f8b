"""A queue at the server, and what is none: both sides of each limit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from latpcap.findings import queues
from latpcap.limits import LIMITS
from latpcap.user_waits.cause_totals import CauseTotal
from latpcap.user_waits.servers import Server

US = 1_000


def told(
    number: int = 128, each_us: float = 100.0, takes: Callable[[int], float] | None = None, other_ms: float = 0.0
) -> queues.Queue | None:
    """So many requests that come 1 us apart; the n-th is answered `takes(n)` us after it came, else in its turn."""
    came = np.arange(number) * US
    took = np.array([takes(n) if takes else each_us * (n + 1) - n for n in range(number)])
    left = came + (took * US).astype(np.int64)
    exchanges = pa.table(
        {
            "exchange": np.arange(number),
            "stream": np.arange(number),
            "request_first_frame": np.arange(number) + 1,
            "complete": np.ones(number, bool),
            "request_end": came,
            "response_start": left,
            "kind": pa.nulls(number, pa.string()).dictionary_encode(),
            "status": pa.nulls(number, pa.int32()),
        }
    )
    rows, none = np.arange(number), np.zeros(0, np.int64)
    server = Server("10.0.0.2", 80, rows, np.sort(took / 1e3 + other_ms), 1.0, none, 0, rows, 0, 0, 0, 0, ["10.0.0.1"])
    spent = CauseTotal(server, "server_think", "server", None, rows, took / 1e3, rows, 0.9, number)
    return queues.find(server, [spent], {"stretches": exchanges})


def test_who_is_ahead_and_for_how_long() -> None:
    found = told()
    assert found is not None
    assert (found["requests"], found["ahead"], found["frame"]) == (128, 63.5, 128)
    assert found["each_us"] == pytest.approx(100, rel=0.02) and found["alone_ms"] == pytest.approx(0.55, rel=0.02)
    assert found["wait_ms"] == pytest.approx(found["think_ms"] - found["alone_ms"])
    assert queues.sentence(found).startswith("64 requests ahead at the median, answered 99 us apart: ")
    assert queues.sentence(found).endswith(" with 4 ahead it takes 0.55 ms") and queues.sentence(
        {**found, "fewest": 0.0}
    ).endswith(" with none ahead it takes 0.55 ms")


def test_enough_requests_and_steps() -> None:
    assert told(100) is not None and told(99) is None and LIMITS["queue_requests"] == 100
    # never more than six ahead: three steps are too few
    few = lambda n: 100.0 * (n % 6 + 1)  # noqa: E731
    assert told(128, takes=lambda n: few(n) if n % 6 else 0.5) is None


@pytest.mark.parametrize(
    ("grows", "there"), [(lambda n: 4_000.0, False), (lambda n: 4_000.0 + 7 * (n % 9), False), (None, True)]
)
def test_slow_work_in_parallel_is_none(grows: Callable[[int], float] | None, there: bool) -> None:
    assert (told(takes=grows) is not None) == there


@pytest.mark.parametrize(("base", "there"), [(6_000.0, True), (30_000.0, False)])
def test_it_grows_with_those_ahead(base: float, there: bool) -> None:
    """Beside work that each does alone the queue has to be the larger part at the end."""
    assert (told(takes=lambda n: base + 100.0 * n) is not None) == there and LIMITS["queue_grows"] == 2


@pytest.mark.parametrize(("other", "there"), [(10.0, True), (20.0, False)])
def test_what_takes_the_time_elsewhere_is_no_queue(other: float, there: bool) -> None:
    """The wait for others, 6.3 ms, is to be 0.3 of the median latency."""
    assert (told(other_ms=other) is not None) == there and LIMITS["queue_least_share"] == 0.3
