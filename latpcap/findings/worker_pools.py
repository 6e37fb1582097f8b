"""Find servers whose requests wait for a worker or a rate limit: they arrive together and are answered one by one.

A pool of N workers answers like a line before N counters: with 2 workers and 100 ms of work, 6 simultaneous requests
are answered after 100, 100, 200, 200, 300 and 300 ms.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap import presentation as show
from latpcap.findings.evidence import request, sent_by_host, wait_finding
from latpcap.findings.schema import Finding
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS
from latpcap.user_waits.servers import Server

if TYPE_CHECKING:
    from latpcap.arrays import Array

MIN_STREAMS = 3
"""Fewest waiting requests, and streams of them, that show a line: on one stream a protocol may answer in order."""
SIMULTANEOUS_SHARE = 0.05
"""Requests that arrive within this share of the shortest answer time arrive together."""
MIN_STEADY = 6
"""Fewest answers at equal intervals that show a rate limit."""
STEADY_MS = 4.0
"""Largest deviation of such an interval: the time of real work varies more."""
STEADY_SHARE = 0.01
"""Largest deviation of a longer interval, as a share of it."""


def find_pool(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Find a limited number of workers with a line before them; None if the times do not fit one.

    The answer times are compared with a simulated line: requests are served in the order of arrival, each takes as
    long as the quickest, and the number of workers follows from the rate of answers.
    """
    stretches = tables["stretches"]
    rows = server.rows
    if not LIMITS["pool_least"] <= len(rows) < LIMITS["queue_requests"]:
        return None  # `queues.find` is responsible for more requests
    arrived, answered = (arrays.filled(stretches, name, 0)[rows] for name in ("request_end", "response_start"))
    is_answered = answered > 0
    arrived, answered, rows = arrived[is_answered], answered[is_answered], rows[is_answered]
    if len(rows) < LIMITS["pool_least"]:
        return None
    order = np.argsort(arrived, kind="stable")
    # requests that arrived together are served in an unknown order: take that of their answers
    apart = np.diff(arrived[order], prepend=arrived.min()) > SIMULTANEOUS_SHARE * (answered - arrived).min()
    order = order[np.lexsort((answered[order], np.cumsum(apart)))]
    arrived, answered, rows = arrived[order], answered[order], rows[order]
    took_ms = (answered - arrived) / NS_PER_MS
    each_ms = float(took_ms.min())
    if each_ms < LIMITS["pool_least_ms"] or took_ms.max() < LIMITS["pool_grows"] * each_ms:
        return None
    span_ms = float(answered.max() - answered.min()) / NS_PER_MS
    workers = max(1, round((len(rows) - 1) * each_ms / span_ms)) if span_ms else len(rows)
    if workers * LIMITS["pool_grows"] > len(rows):
        return None
    expected = _simulated_answers(arrived, each_ms, workers)
    is_near = np.abs(expected - answered) / NS_PER_MS <= LIMITS["pool_near_share"] * np.maximum(each_ms, took_ms)
    worst = int(took_ms.argmax())
    if float(np.mean(is_near)) < LIMITS["pool_fits_share"] or not is_near[worst]:
        return None
    streams = arrays.numbers(stretches, "stream")[rows]
    has_waited = expected - arrived > LIMITS["pool_grows"] / 2 * each_ms * NS_PER_MS
    if has_waited.sum() < MIN_STREAMS or len(set(streams[has_waited].tolist())) < MIN_STREAMS:
        return None  # a protocol that answers in order, or a client that pipelines
    sentence = "pool_of_one" if workers == 1 else "pool_of_some"
    values = {"server": server.name, "workers": workers, "n": len(rows), "each_ms": each_ms,
              "most_ms": float(took_ms.max())}  # fmt: skip
    if backend := _backend_of_pool(server, rows, each_ms, tables):
        sentence, values["behind"] = "pool_before", backend
    return wait_finding(
        server, request(stretches, int(rows[worst])), float(took_ms.max()), sentence, values, cause="pool",
        clients=len(server.clients), exchanges=len(rows), total_ms=float((took_ms - each_ms).sum()),
    )  # fmt: skip


def _simulated_answers(arrived: Array, each_ms: float, workers: int) -> Array:
    """Return when each request is answered if `workers` take them in order and each takes `each_ms`."""
    free_at, each_ns = [0] * workers, round(each_ms * NS_PER_MS)
    answered = np.zeros(len(arrived), np.int64)
    for index, time in enumerate(arrived.tolist()):
        answered[index] = max(time, free_at[0]) + each_ns
        heapq.heapreplace(free_at, int(answered[index]))
    return answered


def _backend_of_pool(server: Server, rows: Array, each_ms: float, tables: Mapping[str, pa.Table]) -> str:
    """Return the server that does the work of these requests, if this one passes each on when its turn has come.

    "" if fewer than most are passed on, to several servers, or if the time there is not `each_ms`.
    """
    stretches, streams = tables["stretches"], tables["streams"]
    (method, _), (target, _) = (arrays.codes(stretches, name) for name in ("method", "target"))
    arrived, answered = (arrays.filled(stretches, name, 0) for name in ("request_end", "response_start"))
    is_inner = sent_by_host(server, tables, slice(None)) & (answered > 0)
    is_inner[server.rows] = False
    passed_rows = []
    for row in rows.tolist():
        is_same = is_inner & (method == method[row]) & (target == target[row])
        is_same &= (arrived >= arrived[row]) & (answered <= answered[row])
        if (candidates := np.flatnonzero(is_same)).size:
            passed_rows.append(int(candidates[answered[candidates].argmax()]))
    if len(passed_rows) < show.MIN_NESTED_SHARE * len(rows):
        return ""
    if abs(float(np.median(arrays.numbers(stretches, "latency_ms")[passed_rows])) - each_ms) > (
        LIMITS["pool_near_share"] * each_ms
    ):
        return ""  # the line is at the backend
    numbers = arrays.numbers(stretches, "stream")[passed_rows]
    ends = arrays.looked_up(streams, "stream", numbers, ("server", "server_port"))
    return endpoint(*ends[0]) if len(set(ends)) == 1 else ""


def find_rate_limit(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Find answers sent at equal intervals, on whichever connection, while other requests wait; None without them."""
    stretches, rows = tables["stretches"], server.rows
    if not MIN_STEADY < len(rows) < LIMITS["queue_requests"]:
        return None
    arrived, answered = (arrays.filled(stretches, name, 0)[rows] for name in ("request_end", "response_start"))
    order = np.argsort(answered, kind="stable")
    arrived, answered, rows = arrived[order], answered[order], rows[order]
    is_waiting = (answered[:-1] > 0) & (arrived[1:] < answered[:-1])  # it had arrived before the previous answer
    apart = np.diff(answered)[is_waiting] / NS_PER_MS
    if len(apart) < MIN_STEADY:
        return None
    each_ms = float(np.median(apart))
    is_steady = np.abs(apart - each_ms) <= max(STEADY_MS, STEADY_SHARE * each_ms)
    steady_rows = np.flatnonzero(is_waiting)[is_steady] + 1
    took_ms = (answered - arrived)[steady_rows] / NS_PER_MS
    streams = set(arrays.numbers(stretches, "stream")[rows[steady_rows]].tolist())
    if len(steady_rows) < MIN_STEADY or is_steady.mean() < LIMITS["pool_fits_share"] or len(streams) < MIN_STREAMS:
        return None
    if each_ms < LIMITS["slow_ms"] or np.median(took_ms) < 2 * each_ms:
        return None
    median, longest = float(np.median(took_ms)), float(took_ms.max())
    values = {"server": server.name, "n": len(steady_rows), "each_ms": each_ms, "span_ms": (median, longest)}
    return wait_finding(
        server, request(stretches, int(rows[steady_rows[int(took_ms.argmax())]])), longest, "at_a_rate", values,
        clients=len(server.clients), exchanges=len(steady_rows), total_ms=float(took_ms.sum()), median_ms=median,
    )  # fmt: skip
