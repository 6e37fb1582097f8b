"""Which delayed ACKs did nobody wait for? Events in, one row per server and side that delayed them out.

A held ACK is a waste of nobody's time unless its sender was waiting: said, so that it is not taken for the cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.findings.schema import Finding
from latpcap.findings.segments import segments
from latpcap.findings.totals import SIDES, endpoint
from latpcap.limits import LIMITS

if TYPE_CHECKING:
    import pyarrow as pa


def held_for_nobody(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Held ACKs that freed no segment, by server and by the side that held them."""
    import numpy as np

    streams, events = tables["streams"], segments(tables)
    held = events.held() if events is not None else ()
    if not held or not len(held[0]):
        return []
    ends = arrays.looked_up(streams, "stream", held[2], ("server", "server_port"))
    groups: dict[tuple[str, int, str], list[tuple[float, int, int]]] = {}
    for ms, frame, stream, by_client, (name, port) in zip(*(c.tolist() for c in held), ends, strict=True):
        groups.setdefault((name, port, "client" if by_client else "server"), []).append((ms, frame, stream))
    found = []
    for (server, port, side), seen in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
        if len(seen) < LIMITS["held_few"]:
            continue
        ms = np.sort([s[0] for s in seen])
        typical = sorted(seen)[len(seen) // 2]
        values = {"side": side, "n": len(seen), "low": float(ms[0]), "high": float(ms[-1])}
        found.append(
            Finding(
                kind="harmless", server=server, server_port=port, cause="delayed_ack", owner=side,
                grade="harmless", confidence=LIMITS["held_confidence"], sender=SIDES[side], delayed_ack="on",
                delayed_ack_seen_on=len(seen), exchanges=0, streams=len({s[2] for s in seen}),
                median_ms=arrays.percentile(ms, 0.5), p10_ms=arrays.percentile(ms, 0.1),
                p90_ms=arrays.percentile(ms, 0.9), max_ms=float(ms[-1]), typical_stream=typical[2],
                typical_ms=typical[0], typical_frames=(typical[1],),
                filter=f"tcp.stream eq {typical[2]} and frame.number == {typical[1]}",
                sentence="held_back_harmless", values={"server": endpoint(server, port), **values},
            )
        )  # fmt: skip
    return found
