"""Did requests wait for each other, or for a proxy that collects answers? Exchanges in, findings out.

A pool of workers: requests that come together are answered so far apart as one takes, as a line before that many
counters. A proxy that buffers: the server behind it answered in pieces, the proxy passed all of them on at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.findings import slow
from latpcap.findings.hung import on_stream
from latpcap.findings.schema import Finding
from latpcap.findings.totals import SETUP, Server, endpoint
from latpcap.findings.traffic import called
from latpcap.limits import LIMITS

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

MS = 1e6
LOCAL = ("127.", "::1")
"""Addresses of the host itself: a proxy asks servers there by them."""


def pool(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """So many workers, and a line before them; None where the times do not fit one.

    The answers are compared with those of a line: in the order in which requests came, each takes as long as the
    quickest, and as many are at work as answers leave in that time.
    """
    import numpy as np

    exchanges = tables["exchanges"]
    rows = server.rows
    if not LIMITS["pool_least"] <= len(rows) <= LIMITS["queue_requests"]:
        return None  # of more requests `queue` tells
    came, left = (arrays.filled(exchanges, c, 0)[rows] for c in ("request_end", "response_start"))
    known = left > 0
    order = np.argsort(came[known], kind="stable")
    came, left, rows = came[known][order], left[known][order], rows[known][order]
    if len(rows) < LIMITS["pool_least"]:
        return None
    took = (left - came) / MS
    each = float(took.min())
    if each < LIMITS["pool_least_ms"] or took.max() < LIMITS["pool_grows"] * each:
        return None
    span = float(left.max() - left.min()) / MS
    workers = max(1, round((len(rows) - 1) * each / span)) if span else len(rows)
    if workers * LIMITS["pool_grows"] > len(rows):
        return None
    off = np.abs(_line(came, each, workers) - left) / MS
    if float(np.mean(off <= LIMITS["pool_near_share"] * np.maximum(each, took))) < LIMITS["pool_fits_share"]:
        return None
    worst = int(took.argmax())
    [row] = exchanges.select(["exchange", "stream", "request_first_frame"]).slice(int(rows[worst]), 1).to_pylist()
    word = "pool_of_one" if workers == 1 else "pool_of_some"
    values = {"server": server.name, "workers": workers, "n": len(rows), "each_ms": each, "most_ms": float(took.max())}
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="pool", owner="server",
        clients=len(server.clients), exchanges=len(rows), of_exchanges=len(server.rows),
        total_ms=float(server.latency.sum()), max_ms=float(took.max()), grade="probable",
        confidence=LIMITS["hung_probable_confidence"], worst_exchange=row["exchange"], worst_stream=row["stream"],
        worst_ms=float(took.max()), worst_frames=(row["request_first_frame"],),
        filter=on_stream(row["stream"]), harm="late", sentence=word, values=values,
    )  # fmt: skip


def _line(came: Array, each_ms: float, workers: int) -> Array:
    """When each request would be answered, if so many workers took them in their order, and each took so long."""
    import numpy as np

    free, each = [0] * workers, round(each_ms * MS)
    done = np.zeros(len(came), np.int64)
    for place, at in enumerate(came.tolist()):
        worker = free.index(min(free))
        free[worker] = max(at, free[worker]) + each
        done[place] = free[worker]
    return done


@dataclass(frozen=True)
class _Part:
    row: int
    start: int
    begun: int
    end: int


def buffered(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Did this server hold back what another had answered in pieces? None where no such answer lies inside one of its.

    The other server has to be asked by this one's host: from its address, or on the host itself.
    """
    import numpy as np

    exchanges, streams = tables["exchanges"], tables["streams"]
    late = [int(row) for row in server.slow]
    if not late or len(late) > LIMITS["pool_most"]:
        return None
    start, end = (arrays.numbers(exchanges, c) for c in ("start", "end"))
    begun = arrays.filled(exchanges, "response_start", 0)
    code, protocols = arrays.codes(exchanges, "protocol")
    asked = code != (protocols.index(SETUP) if SETUP in protocols else -2)
    least = LIMITS["stuck_ms"] * MS
    inner = np.flatnonzero(asked & (begun > 0) & (end - begun >= least))
    inner = inner[~np.isin(inner, server.rows)]
    ends = arrays.looked_up(
        streams, "stream", arrays.numbers(exchanges, "stream")[inner], ("client", "server", "server_port")
    )
    hits = []
    for row in late:
        for place, (client, behind, port) in zip(inner.tolist(), ends, strict=True):
            here = client == server.address or client.startswith(LOCAL)
            inside = start[row] <= start[place] and end[place] <= end[row]
            kept = begun[row] - begun[place] >= least and begun[row] >= end[place] - least
            if here and inside and kept:
                hits.append((row, place, endpoint(behind, port)))
                break
    if len(hits) * 2 < len(late):
        return None
    row, place, behind = max(hits, key=lambda hit: int(begun[hit[0]] - begun[hit[1]]))
    names = ["exchange", "stream", "request_first_frame", "method", "target"]
    [one] = exchanges.select(names).slice(row, 1).to_pylist()
    held = int(begun[row] - begun[place]) / MS
    values = {
        "server": server.name, "behind": behind, "n": len(hits), "name": called(one["method"], one["target"]),
        "frame": one["request_first_frame"], "held_ms": held, "first_ms": int(begun[place] - start[row]) / MS,
    }  # fmt: skip
    events = bool(slow.streams(exchanges)[place])
    return Finding(
        kind="wait", server=server.address, server_port=server.port, cause="buffered", owner="server",
        clients=len(server.clients), exchanges=len(hits), of_exchanges=len(server.rows),
        total_ms=float(server.latency.sum()), max_ms=held, grade="proven" if events else "probable",
        confidence=LIMITS["hung_proven_confidence" if events else "hung_probable_confidence"],
        worst_exchange=one["exchange"], worst_stream=one["stream"], worst_ms=held,
        worst_frames=(one["request_first_frame"],), filter=on_stream(one["stream"]), harm="late",
        sentence="buffered_events" if events else "buffered", values=values,
    )  # fmt: skip
