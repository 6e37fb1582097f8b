"""What can one direction alone let us suspect? Gaps that the core suspects to be stalls in, hints by server out.

A gap between two small segments in which the sender heard from its peer (its echoed time stamp moved) may be Nagle's
wait for a held ACK, or a pause of the program in which an ACK happened to come. Which one it was, the other direction
would tell. So nothing here is ever more than suspected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from latpcap import arrays, words
from latpcap.findings.schema import Finding
from latpcap.findings.totals import SIDES
from latpcap.limits import LIMITS
from latpcap.vocabulary import STALL

if TYPE_CHECKING:
    import pyarrow as pa

METHOD = "one_way"
"""The `method` of their rows among the exchanges."""


def suspects(tables: Mapping[str, pa.Table]) -> list[Finding]:
    """Servers at which a stall is suspected from one direction alone, and the side whose packets were captured."""
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    method, methods = arrays.codes(exchanges, "method")
    rows = np.flatnonzero(method == methods.index(METHOD)) if METHOD in methods else np.zeros(0, np.int64)
    if not len(rows):
        return []
    column = {c: arrays.numbers(exchanges, c) for c in ("stream", "request_first_frame", "request_last_frame")}
    held, nagle = arrays.numbers(exchanges, "delayed_ack_ms"), arrays.numbers(exchanges, "nagle_ms")
    groups: dict[tuple[str, int, str, str], list[tuple[float, int, int, int]]] = defaultdict(list)
    ends = arrays.looked_up(streams, "stream", column["stream"][rows], ("server", "server_port", "client_packets"))
    for row, (server, port, client_packets) in zip(rows.tolist(), ends, strict=True):
        number, *frames = (int(column[c][row]) for c in ("stream", "request_first_frame", "request_last_frame"))
        # what was freed is seen as an ACK's round trip only where the ACKs were captured
        how = "acks" if nagle[row] else "data"
        seen = "client" if client_packets else "server"
        groups[server, port, seen, how].append((float(held[row]), number, frames[0], frames[1]))
    order = sorted(groups.items(), key=lambda g: -len(g[1]))
    return [_row(*key, seen) for key, seen in order if len(seen) >= LIMITS["one_way_gaps"]]


def _row(
    server: str, port: int, seen_side: str, how: str, seen: list[tuple[float, int, int, int]]
) -> Finding:  # fmt: skip
    import numpy as np

    seen.sort()
    ms = np.array([s[0] for s in seen])
    typical = seen[len(seen) // 2]
    sender = seen_side if how == "data" else SIDES[seen_side]
    values = {
        "side": seen_side, "n": len(seen), "low": float(ms[0]), "high": float(ms[-1]), "sender": sender,
        "receiver": SIDES[sender], "other": SIDES[seen_side],
    }  # fmt: skip
    return Finding(
        kind="one_way", server=server, server_port=port, cause=STALL, owner=sender,
        held_by=SIDES[sender], streams=len({s[1] for s in seen}), total_ms=float(ms.sum()),
        median_ms=arrays.percentile(ms, 0.5), p10_ms=arrays.percentile(ms, 0.1),
        p90_ms=arrays.percentile(ms, 0.9), max_ms=float(ms[-1]), grade="suspected",
        confidence=LIMITS[f"one_way_{how}_confidence"], limited_by=("one_direction",), sender=sender, nodelay="unknown",
        delayed_ack="unknown", rival=words.say("rival_pauses", sender=sender),
        rival_lost=words.say("rival_one_way_lost"), typical_stream=typical[1],
        typical_ms=typical[0], typical_frames=(typical[2], typical[3]),
        filter=f"tcp.stream eq {typical[1]} and frame.number in {{{typical[2]}, {typical[3]}}}",
        sentence=f"one_way_{how}", values=values,
    )  # fmt: skip
