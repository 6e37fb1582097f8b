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
MAX_AFTER_SHARE = 0.1
"""It is passed on within this share of that time after another answer of the server behind came."""
MIN_HITS = 5
"""Fewest such requests; fewer may come after another answer by chance."""
MIN_HIT_SHARE = 0.75
"""Share of the slow requests that they are."""


class _Held(NamedTuple):
    """A request that a proxy kept, and the request that it sent to the server behind, as rows of stretches."""

    row: int
    behind: int
    ns: int
    """For how long the proxy kept it."""


def find(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Find requests that this proxy passed on only when an answer to another one had come; None without them.

    A proxy that worked on the requests itself would pass them on at any time, whatever the server behind answers.
    """
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
    return _finding(server, held, tables)


def _held(late_rows: Array, behind: Array, stretches: pa.Table) -> list[_Held]:
    """Pair each slow request with the one behind that has its name and ended last before its answer; keep the held."""
    start, end = (arrays.numbers(stretches, name) for name in ("start", "end"))
    arrived, answered = (arrays.filled(stretches, name, 0) for name in ("request_end", "response_start"))
    (method, _), (target, targets) = (arrays.codes(stretches, name) for name in ("method", "target"))
    name = method.astype(np.int64) * (len(targets) + 1) + target
    answers = np.sort(end[behind])
    taken: set[int] = set()
    held = []
    for row in late_rows[np.argsort(answered[late_rows], kind="stable")].tolist():
        inside = behind[(name[behind] == name[row]) & (start[behind] >= arrived[row]) & (end[behind] <= end[row])]
        inside = inside[~np.isin(inside, list(taken))]
        if not len(inside):
            continue
        partner = int(inside[end[inside].argmax()])
        taken.add(partner)
        kept_ns = int(start[partner]) - int(arrived[row])
        before = int(np.searchsorted(answers, start[partner], side="right")) - 1
        after_ns = int(start[partner]) - int(answers[before]) if before >= 0 else kept_ns
        is_kept = kept_ns >= MIN_HELD_SHARE * (int(answered[row]) - int(arrived[row]))
        if is_kept and after_ns <= MAX_AFTER_SHARE * kept_ns:
            held.append(_Held(row, partner, kept_ns))
    return held


def _finding(server: Server, held: list[_Held], tables: Mapping[str, pa.Table]) -> Finding | None:
    """Return the finding; None if the server behind worked on as many at a time as waited, so that none had to."""
    stretches = tables["stretches"]
    start, end = (arrays.numbers(stretches, name) for name in ("start", "end"))
    arrived = arrays.filled(stretches, "request_end", 0)
    behind = np.array([pair.behind for pair in held])
    waiting = np.array([pair.row for pair in held])
    at_once = _most_at_once(start[behind], end[behind])
    if at_once >= _most_at_once(arrived[waiting], start[behind]):
        return None
    worst = max(held, key=lambda pair: pair.ns)
    row = request(stretches, worst.row)
    [backend] = arrays.looked_up(
        tables["streams"], "stream", arrays.numbers(stretches, "stream")[[worst.behind]], ("server", "server_port")
    )
    kept_ms = np.sort(np.array([pair.ns for pair in held]) / NS_PER_MS)
    values = {
        "server": server.name, "behind": endpoint(*backend), "n": len(held), "limit": at_once,
        "held_ms": arrays.percentile(kept_ms, 0.5),
        "behind_ms": float(np.median(end[behind] - start[behind])) / NS_PER_MS,
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
