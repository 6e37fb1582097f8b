"""Did the client let its server wait? Streams and exchanges in; connections that were opened and not used at once out.

The time before a request belongs to no exchange: nobody waited for an answer. But whoever looks at a capture sees a
slow connection there, and it is the client's program that took the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from latpcap import arrays

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_MS = 200.0
"""Shorter pauses before the first request are a program's start."""
SYN_SEEN = 1
ASKS_FIRST = ("http", "tls")
"""In these the client speaks first; elsewhere it may have waited for the server's greeting."""


def before_asking(tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    """Connections whose first request came this much later than their handshake had ended, by server."""
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    first = np.flatnonzero(arrays.numbers(exchanges, "index") == 0)
    asked = dict(
        zip(
            arrays.numbers(exchanges, "stream")[first].tolist(),
            zip(
                arrays.numbers(exchanges, "start")[first].tolist(),
                arrays.numbers(exchanges, "exchange")[first].tolist(),
                arrays.numbers(exchanges, "request_first_frame")[first].tolist(),
                strict=True,
            ),
            strict=True,
        )
    )
    columns = ("stream", "server", "server_port", "client", "start", "initial_rtt_ms", "completeness", "protocol")
    ends = arrays.numbers(streams, "start")
    groups: dict[tuple[str, int], list[tuple[float, int, int, int, str]]] = defaultdict(list)
    rows = zip(*(ends.tolist() if c == "start" else streams[c].to_pylist() for c in columns), strict=True)
    for stream, server, port, client, start, rtt, bits, protocol in rows:
        if stream not in asked or rtt is None or not bits & SYN_SEEN or protocol not in ASKS_FIRST:
            continue
        at, exchange, frame = asked[stream]
        waited = (at - start) / 1e6 - rtt
        if waited >= LEAST_MS:
            groups[server, port].append((waited, stream, exchange, frame, client))
    return [_row(server, port, seen) for (server, port), seen in sorted(groups.items(), key=lambda g: -max(g[1])[0])]


def _row(server: str, port: int, seen: list[tuple[float, int, int, int, str]]) -> dict[str, Any]:
    seen.sort()
    times = [s[0] for s in seen]
    worst, typical = seen[-1], seen[len(seen) // 2]
    span = f"{times[-1]:,.0f} ms" if len(seen) == 1 else f"{times[0]:,.0f}-{times[-1]:,.0f} ms"
    count = "1 connection" if len(seen) == 1 else f"{len(seen):,} connections"
    return {
        "kind": "idle", "server": server, "server_port": port, "cause": "client_think", "owner": "client",
        "clients": len({s[4] for s in seen}), "client": worst[4], "streams": len(seen), "exchanges": 0,
        "total_ms": sum(times), "median_ms": typical[0], "max_ms": worst[0], "grade": "proven", "confidence": 0.9,
        "worst_exchange": worst[2], "worst_stream": worst[1], "worst_ms": worst[0], "worst_frames": [worst[3]],
        "typical_exchange": typical[2], "typical_stream": typical[1], "typical_ms": typical[0],
        "typical_frames": [typical[3]],
        "filter": f"tcp.stream eq {typical[1]} and frame.number in {{{typical[3]}}}",
        "says": f"the client asked {span} after the handshake on {count}: its program took that time, not the server",
    }  # fmt: skip
