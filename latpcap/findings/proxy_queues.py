"""Find proxies whose requests wait for a turn: a proxy that sends only some at a time to the server behind it.

Its limit may be one of connections (HAProxy's maxconn, a pool) or of its own workers. The server behind is quick for
each request, and the proxy works on none of those that wait; so neither program is to be profiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from latpcap import arrays
from latpcap.findings.evidence import called, request, sent_by_host, slow_answers, wait_finding
from latpcap.findings.schema import Finding
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, request_mask
from latpcap.user_waits.servers import Server

if TYPE_CHECKING:
    from latpcap.arrays import Array

MIN_HELD_SHARE = 0.5
"""A request waits for its turn if the proxy keeps it for this share of its latency before it passes it on."""
MIN_BUSY_SHARE = 0.85
"""While requests wait, the proxy has as many under way as it ever has, for this share of the time.

A proxy that works on the requests itself passes them on at any time, so that its number under way varies.
"""
MIN_HITS = 5
"""Fewest such requests; few may find the proxy busy by chance."""
MIN_HIT_SHARE = 0.75
"""Share of the slow requests that they are."""


class _Held(NamedTuple):
    """A request that a proxy kept, and the request that it sent to the server behind, as rows of stretches."""

    row: int
    behind: int
    ns: int
    """For how long the proxy kept it."""


def find(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Find requests that this proxy kept while it had as many under way as it ever has; None without them."""
    stretches = tables["stretches"]
    late_rows = slow_answers(server, stretches)
    if not MIN_HITS <= len(late_rows) <= LIMITS["pool_most"]:
        return None
    is_behind = request_mask(stretches) & (arrays.filled(stretches, "response_start", 0) > 0)
    behind = np.setdiff1d(np.flatnonzero(is_behind), server.all_requests)
    behind = behind[sent_by_host(server, tables, behind)] if len(behind) else behind
    if len(behind) < MIN_HITS:
        return None
    held = _held(late_rows, behind, stretches)
    if len(held) < max(MIN_HITS, MIN_HIT_SHARE * len(late_rows)):
        return None
    return _finding(server, held, behind, tables)


def _held(late_rows: Array, behind: Array, stretches: pa.Table) -> list[_Held]:
    """Pair each slow request with the one behind that has its name and ended last before its answer; keep the held."""
    start, end = (arrays.numbers(stretches, name) for name in ("start", "end"))
    arrived, answered = (arrays.filled(stretches, name, 0) for name in ("request_end", "response_start"))
    (method, _), (target, targets) = (arrays.codes(stretches, name) for name in ("method", "target"))
    name = method.astype(np.int64) * (len(targets) + 1) + target
    is_free = np.ones(len(behind), bool)
    held = []
    for row in late_rows[np.argsort(answered[late_rows], kind="stable")].tolist():
        is_inside = (name[behind] == name[row]) & (start[behind] >= arrived[row]) & (end[behind] <= end[row]) & is_free
        inside = np.flatnonzero(is_inside)
        if not len(inside):
            continue
        last = int(inside[end[behind[inside]].argmax()])
        is_free[last] = False
        kept_ns = int(start[behind[last]]) - int(arrived[row])
        if kept_ns >= MIN_HELD_SHARE * (int(answered[row]) - int(arrived[row])):
            held.append(_Held(row, int(behind[last]), kept_ns))
    return held


def _finding(server: Server, held: list[_Held], behind: Array, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Return the finding; None if the proxy could have passed on more at a time, so that no request had to wait."""
    stretches = tables["stretches"]
    start, end = (arrays.numbers(stretches, name) for name in ("start", "end"))
    arrived = arrays.filled(stretches, "request_end", 0)
    rows, partners = (np.array([pair[part] for pair in held]) for part in (0, 1))
    under_way, waiting = (start[behind], end[behind]), (arrived[rows], start[partners])
    limit = _most_at_once(*under_way)
    if limit >= _most_at_once(*waiting) or _busy_share(under_way, waiting, limit) < MIN_BUSY_SHARE:
        return None
    worst = max(held, key=lambda pair: pair.ns)
    row = request(stretches, worst.row)
    [backend] = arrays.looked_up(
        tables["streams"], "stream", arrays.numbers(stretches, "stream")[[worst.behind]], ("server", "server_port")
    )
    kept_ms = np.sort(np.array([pair.ns for pair in held]) / NS_PER_MS)
    values = {
        "server": server.name, "behind": endpoint(*backend), "n": len(held), "limit": limit,
        "held_ms": arrays.percentile(kept_ms, 0.5),
        "behind_ms": float(np.median(end[partners] - start[partners])) / NS_PER_MS,
        "name": called(row["method"], row["target"]), "frame": row["request_first_frame"],
    }  # fmt: skip
    frame = int(arrays.numbers(stretches, "request_first_frame")[worst.behind])
    return wait_finding(
        server, row, float(kept_ms[-1]), "proxy_queue", values, clients=len(server.clients), exchanges=len(held),
        total_ms=float(kept_ms.sum()), median_ms=values["held_ms"],
        worst_frames=tuple(dict.fromkeys((row["request_first_frame"], frame))),
    )  # fmt: skip


def _most_at_once(begins: Array, ends: Array) -> int:
    """Return how many of these spans overlap at most."""
    instants = np.r_[ends, begins]
    steps = np.r_[np.full(len(ends), -1), np.full(len(begins), 1)]
    order = np.lexsort((steps, instants))  # at one instant, an end comes first
    return int(np.cumsum(steps[order]).max())


def _busy_share(under_way: tuple[Array, Array], waiting: tuple[Array, Array], limit: int) -> float:
    """Return the mean number of spans under way as a share of `limit`, over the time in which others wait."""
    instants = np.unique(np.concatenate([*under_way, *waiting]).astype(np.int64))
    counts = [
        np.searchsorted(np.sort(begins), instants[:-1], side="right")
        - np.searchsorted(np.sort(ends), instants[:-1], side="right")
        for begins, ends in (under_way, waiting)
    ]
    ns = np.diff(instants) * (counts[1] > 0)
    return float((ns * counts[0]).sum() / (limit * max(ns.sum(), 1)))
