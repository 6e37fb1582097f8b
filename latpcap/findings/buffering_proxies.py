"""Find proxies that buffer: the server behind one answered in pieces, and the proxy sent all of them at the end."""

from __future__ import annotations

from collections.abc import Mapping

from latpcap import arrays
from latpcap.findings.evidence import called, request, sent_by_host, wait_finding
from latpcap.findings.schema import Finding
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import NS_PER_MS, request_mask
from latpcap.user_waits import slow_requests
from latpcap.user_waits.servers import Server

MIN_PAUSE_RATIO = 2.0
"""An event stream is buffered if its longest pause is this many times the longest pause of the stream behind it."""


def find(server: Server, tables: Mapping[str, pa.Table]) -> Finding | None:
    """Find answers that this server held back while another server sent it the pieces; None without them.

    The other server's client must be this server's host, and its exchange must lie inside the held one.
    """
    stretches, streams = tables["stretches"], tables["streams"]
    is_event_stream = slow_requests.event_streams(stretches)
    late_rows = np.union1d(server.slow, server.rows[is_event_stream[server.rows]]).tolist()
    if not late_rows or len(late_rows) > LIMITS["pool_most"]:
        return None
    start, end = (arrays.numbers(stretches, name) for name in ("start", "end"))
    answer_start = arrays.filled(stretches, "response_start", 0)
    min_ns = LIMITS["stuck_ms"] * NS_PER_MS
    inner = np.flatnonzero(request_mask(stretches) & (answer_start > 0) & (end - answer_start >= min_ns))
    inner = inner[sent_by_host(server, tables, inner) & ~np.isin(inner, server.rows)]
    pause = arrays.filled(stretches, "longest_gap_ms", 0)
    hits = []
    for row in late_rows if len(inner) else ():
        is_inside = (start[row] <= start[inner]) & (end[inner] <= end[row])
        is_whole = answer_start[row] >= end[inner] - min_ns
        is_lumped = is_event_stream[row] & (pause[inner] > 0) & (pause[row] >= MIN_PAUSE_RATIO * pause[inner])
        is_held = is_inside & (answer_start[row] - answer_start[inner] >= min_ns) & (is_whole | is_lumped)
        if is_held.any():
            hits.append((row, int(inner[int(np.argmax(is_held))])))
    if not hits or len(hits) * 2 < len(late_rows):
        return None
    row, backend_row = max(hits, key=lambda hit: int(answer_start[hit[0]] - answer_start[hit[1]]))
    [backend] = arrays.looked_up(
        streams, "stream", arrays.numbers(stretches, "stream")[[backend_row]], ("server", "server_port")
    )
    worst = request(stretches, row)
    held_ms = int(answer_start[row] - answer_start[backend_row]) / NS_PER_MS
    values = {
        "server": server.name, "behind": endpoint(*backend), "n": len(hits),
        "name": called(worst["method"], worst["target"]), "frame": worst["request_first_frame"], "held_ms": held_ms,
        "first_ms": int(answer_start[backend_row] - start[row]) / NS_PER_MS,
    }  # fmt: skip
    return wait_finding(
        server, worst, held_ms, "buffered_events" if is_event_stream[backend_row] else "buffered", values,
        cause="buffered", clients=len(server.clients), exchanges=len(hits),
        total_ms=sum(int(answer_start[front] - answer_start[back]) for front, back in hits) / NS_PER_MS,
    )  # fmt: skip
