"""Find uploads whose client waited for "100 Continue" until its timer expired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from latpcap import arrays
from latpcap.findings import fixes
from latpcap.findings.round_trips import MIN_CONNECTS, Requests, trips_finding
from latpcap.findings.schema import Finding
from latpcap.lazy import np, pa
from latpcap.user_waits.cause_totals import CauseTotal
from latpcap.user_waits.servers import Server

MAX_TIMER_SPREAD = 0.1
"""Largest spread of waits that one timer ended, as a share of the shortest."""


def find(server: Server, items: Sequence[CauseTotal], tables: Mapping[str, pa.Table]) -> Finding | None:
    """Find uploads whose client waited for "100 Continue" until its timer expired; None without them.

    All these pauses are equally long. A program whose data is late pauses for varying times.
    """
    stretches = tables["stretches"]
    is_upload = arrays.equals(stretches, "method", "POST", "PUT", "PATCH")
    is_upload &= arrays.equals(stretches, "protocol", "http")
    uploads = server.rows[is_upload[server.rows]]
    think = next((item for item in items if item.cause == "client_think"), None)
    if think is None or len(uploads) < MIN_CONNECTS:
        return None
    is_of_upload = is_upload[think.rows]
    rows, waited_ms = think.rows[is_of_upload], think.ms[is_of_upload]
    is_timed = np.array([fixes.waits_for_continue(ms) for ms in waited_ms.tolist()], bool)
    rows, waited_ms = rows[is_timed], waited_ms[is_timed]
    if len(rows) < MIN_CONNECTS or 2 * len(rows) < len(uploads):
        return None
    if np.ptp(waited_ms) > MAX_TIMER_SPREAD * waited_ms.min():
        return None
    answered, requested = (arrays.filled(stretches, name, 0)[rows] for name in ("response_start", "request_end"))
    if (answered < requested).any():
        return None  # a 100 Continue arrived before the body
    requests, ends = Requests(tables["streams"], stretches), (server.address, server.port)
    return trips_finding("expect_continue", "client", "late", ends, requests, rows, waited_ms, len(uploads))
