"""Find a queue at a server: requests that waited for requests ahead of them, not for their own work.

Slow work takes equally long however many requests are waiting. In a queue, or where requests share a processor, the
server's time grows with the number of requests ahead, by the interval between two answers for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from latpcap import arrays, spill, words
from latpcap.findings.schema import Finding, wireshark_filter
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits import slow_requests
from latpcap.user_waits.cause_totals import CauseTotal
from latpcap.user_waits.servers import Server

if TYPE_CHECKING:
    from latpcap.arrays import Array

MAX_REQUESTS = 1 << 18
"""Upper bound on the requests examined per server; later requests do not change the estimate, and memory stays
bounded."""


class Queue(TypedDict):
    """A queue at a server; the quantities are medians over its requests."""

    ahead: float
    """Requests that the server had received but not answered when this one arrived."""
    each_us: float
    """Interval between two answers of the server while this request waited."""
    wait_ms: float
    """The part of `think_ms` spent on the requests ahead."""
    think_ms: float
    """Time that the server's program took for the request."""
    alone_ms: float
    """Time that it takes for a request with only `fewest` requests ahead."""
    fewest: float
    requests: int
    exchange: int
    """The request with the most requests ahead; `stream` and `frame` are its stream and first frame."""
    stream: int
    frame: int


def _judged_rows(rows: Array, stretches: pa.Table) -> Array:
    """Return the answered requests among these rows, without long polls and event streams; the first of very many."""
    is_complete = arrays.numbers(stretches, "complete").astype(bool)
    if len(rows) > MAX_REQUESTS:  # keep the first ones: later requests were not ahead of them
        arrived, is_of_server = arrays.numbers(stretches, "request_end"), spill.row_mask(rows, stretches.num_rows)
        spans = list(spill.parts(len(arrived)))
        arrived_there = spill.from_pieces(arrived.dtype, (arrived[span][is_of_server[span]] for span in spans))
        last = spill.nth_smallest(arrived_there, MAX_REQUESTS)
        is_complete &= np.concatenate([arrived[span] <= last for span in spans])
    may_wait = is_complete & ~slow_requests.long_polls(stretches) & ~slow_requests.event_streams(stretches)
    return spill.selected(rows, may_wait)


def find(server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]) -> Queue | None:
    """Find the queue of this server's program; None if there is none, or too few requests to decide."""
    stretches = tables["stretches"]
    rows = _judged_rows(server.rows, stretches)
    if len(rows) < LIMITS["queue_requests"]:
        return None
    arrived, answered = (
        arrays.numbers(stretches, name)[rows].astype(np.int64) for name in ("request_end", "response_start")
    )
    think = think_ms(items, rows)
    ahead, passed = _ahead(arrived, answered)
    steps = _time_by_length(ahead, think)
    if len(steps) < LIMITS["queue_steps"]:
        return None
    lengths, times_ms = (np.array(column) for column in zip(*steps, strict=True))
    has_passed = passed > 0
    if not has_passed.any():
        return None
    each_ms = float(np.median((answered - arrived)[has_passed] / NS_PER_MS / passed[has_passed]))
    slope_ms = float((times_ms[-1] - times_ms[0]) / (lengths[-1] - lengths[0]))
    rises = bool((times_ms[1:] >= LIMITS["queue_least_rise"] * times_ms[:-1]).all())
    if not rises or times_ms[-1] < LIMITS["queue_grows"] * times_ms[0]:
        return None
    if not LIMITS["queue_least_slope"] <= slope_ms / each_ms <= LIMITS["queue_most_slope"]:
        return None
    median_ms, alone_ms = float(np.median(think)), float(times_ms[0])
    latency_ms = arrays.percentile(server.latency, 1 / 2)
    if median_ms - alone_ms < LIMITS["queue_least_share"] * latency_ms:
        return None
    names = ["exchange", "stream", "request_first_frame"]
    [longest] = stretches.select(names).slice(int(rows[int(np.argmax(ahead))]), 1).to_pylist()
    return {
        "ahead": float(np.median(ahead)),
        "each_us": each_ms * 1e3,
        "wait_ms": max(median_ms - alone_ms, 0.0),
        "think_ms": median_ms,
        "alone_ms": alone_ms,
        "fewest": float(lengths[0]),
        "requests": len(rows),
        "exchange": longest["exchange"],
        "stream": longest["stream"],
        "frame": longest["request_first_frame"],
    }


def think_ms(items: Sequence[CauseTotal], rows: Array) -> Array:
    """Return how long the server's program worked on each of these exchanges, in ms."""
    think = np.zeros(len(rows))
    for item in items:
        if (item.cause, item.owner) == ("server_think", "server") and len(item.rows):
            hit = np.minimum(np.searchsorted(item.rows, rows), len(item.rows) - 1)
            think += np.where(item.rows[hit] == rows, item.ms[hit], 0.0)
    return think


def _ahead(arrived: Array, answered: Array) -> tuple[Array, Array]:
    """Count for each request the unanswered requests at its arrival, and the answers sent while it waited."""
    arrivals, answers = np.sort(arrived), np.sort(answered)
    before = np.searchsorted(answers, arrived, side="right")
    ahead: Array = np.searchsorted(arrivals, arrived, side="left") - before
    passed: Array = np.searchsorted(answers, answered, side="right") - before
    return np.maximum(ahead, 0), passed


def _time_by_length(ahead: Array, think: Array) -> list[tuple[float, float]]:
    """Return median length and median server time for each class of queue length: 0, 1 to 2, 3 to 6, 7 to 14 ..."""
    power = np.floor(np.log2(ahead + 1)).astype(np.int64)
    steps = []
    for step in np.unique(power):
        is_in_class = power == step
        if is_in_class.sum() >= LIMITS["queue_in_step"]:
            steps.append((float(np.median(ahead[is_in_class])), float(np.median(think[is_in_class]))))
    return steps


def finding(queue: Queue, server: Server) -> Finding:
    """Return the queue as a finding; its time lies inside the server's time."""
    return Finding(
        kind="queue", server=server.address, server_port=server.port, cause="server_think", owner="server",
        clients=len(server.clients), exchanges=queue["requests"], of_exchanges=len(server.rows),
        median_ms=queue["wait_ms"],
        worst_exchange=queue["exchange"], worst_stream=queue["stream"], worst_frames=(queue["frame"],),
        filter=wireshark_filter(queue['stream'], queue['frame']),
        rival=words.say("rival_sharing"), rival_lost=words.say("rival_sharing_lost"), text=sentence(queue),
    )  # fmt: skip


def sentence(queue: Queue) -> str:
    """Return the queue as a sentence."""
    fewest = round(queue["fewest"])
    values = {name: queue[name] for name in ("each_us", "wait_ms", "think_ms", "alone_ms")}
    return words.say("queue" if fewest else "queue_empty", n=round(queue["ahead"]), fewest=fewest, **values)
