"""Was it slow before the requests? Set-ups of connections and clients' pauses in; lost SYNs, late and corked ones out.

The time before a request belongs to no request: nobody waited for an answer. But who opens a connection waits for it,
and whoever looks at a capture sees the pause: it has an owner too, and it is not the server's program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from latpcap import arrays
from latpcap.findings.answer import Pauses
from latpcap.findings.schema import Finding
from latpcap.findings.totals import SETUP
from latpcap.limits import LIMITS
from latpcap.vocabulary import CAUSES, PROVEN

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

ASKS_FIRST = ("http", "tls")
"""In these the client speaks first; elsewhere it may have waited for the server's greeting."""
ROWS = {"syn_rto": "connect", "client_think": "connect", "cork": "pause"}
"""Of which rows beside the requests each of them is."""
SURE = {"syn_rto": "setup_confidence", "client_think": "setup_confidence", "cork": "corked_request_confidence"}


def before_asking(tables: Mapping[str, pa.Table], known: Set[int] = frozenset()) -> list[Finding]:
    """Set-ups that waited for a repeated SYN, those whose client asked late, and requests that a cork held; by server,
    the longest first. Of the streams `known` there is a better reason why a SYN was sent again.
    """
    streams, exchanges = tables["streams"], tables["exchanges"]
    columns = ["server", "server_port", "client", "protocol", "server_packets", "client_unseen_frames"]
    groups: dict[tuple[str, str, int], list[tuple[float, int, int, int, str]]] = defaultdict(list)
    number, stream = arrays.numbers(exchanges, "exchange"), arrays.numbers(exchanges, "stream")
    frame = arrays.numbers(exchanges, "request_first_frame")
    for cause, mine in _late(exchanges).items():
        ms = arrays.numbers(exchanges, f"{cause}_ms")
        ends = arrays.looked_up(streams, "stream", stream[mine], columns)
        for row, (server, port, client, spoken, answers, lost) in zip(mine.tolist(), ends, strict=True):
            if cause == "syn_rto" and int(stream[row]) in known:
                continue
            if not answers or (cause == "client_think" and spoken not in ASKS_FIRST):
                continue
            if cause == "client_think" and lost:  # it may have asked before, and the request was lost
                continue
            found = (float(ms[row]), int(stream[row]), int(number[row]), int(frame[row]), client)
            groups[cause, server, port].append(found)
    order = sorted(groups.items(), key=lambda g: (g[0][0] != "syn_rto", -max(g[1])[0]))
    return [_row(*key, seen) for key, seen in order]


def _late(exchanges: pa.Table) -> dict[str, Array]:
    """The rows that are no requests and have enough of a cause's time, by cause."""
    import numpy as np

    found: dict[str, list[Array]] = {cause: [] for cause in ROWS}
    for span, rows in arrays.sliced(exchanges):
        protocol, names = arrays.codes(rows, "protocol")
        if SETUP not in names:
            continue
        method, methods = arrays.codes(rows, "method")
        before = protocol == names.index(SETUP)
        for cause, places in found.items():
            of_kind = method == (methods.index(ROWS[cause]) if ROWS[cause] in methods else -2)
            late = arrays.numbers(rows, f"{cause}_ms") >= LIMITS["setup_ms"]
            places.append(np.flatnonzero(before & of_kind & late) + span.start)
    return {cause: np.concatenate(places) for cause, places in found.items() if places}


def pauses(tables: Mapping[str, pa.Table], server: str, port: int) -> Pauses:
    """How often, and how long at the median (ms), did this server's clients pause between their requests?"""
    import numpy as np

    streams, exchanges = tables["streams"], tables["exchanges"]
    method, methods = arrays.codes(exchanges, "method")
    ms = arrays.numbers(exchanges, "client_think_ms")
    rows = (
        np.flatnonzero((method == methods.index("pause")) & (ms > 0)) if "pause" in methods else np.zeros(0, np.int64)
    )
    if not len(rows):
        return {"count": 0, "median_ms": 0.0}
    address, addresses = arrays.codes(streams, "server")
    here = address == (addresses.index(server) if server in addresses else -2)
    mine = arrays.numbers(streams, "stream")[here & (arrays.numbers(streams, "server_port") == port)]
    found = np.sort(ms[rows][np.isin(arrays.numbers(exchanges, "stream")[rows], mine)])
    return {"count": len(found), "median_ms": arrays.percentile(found, 0.5) if len(found) else 0.0}


def _row(cause: str, server: str, port: int, seen: list[tuple[float, int, int, int, str]]) -> Finding:
    seen.sort()
    times = [s[0] for s in seen]
    worst, typical = seen[-1], seen[len(seen) // 2]
    streams = len({s[1] for s in seen})
    return Finding(
        kind="setup", server=server, server_port=port, cause=cause,
        owner="network" if cause == "syn_rto" else "client",
        clients=len({s[4] for s in seen}), client=worst[4], streams=streams, exchanges=0,
        total_ms=sum(times), median_ms=typical[0], max_ms=worst[0],
        grade="proven" if LIMITS[SURE[cause]] >= PROVEN else "probable", confidence=LIMITS[SURE[cause]],
        worst_exchange=worst[2], worst_stream=worst[1], worst_ms=worst[0], worst_frames=(worst[3],),
        typical_exchange=typical[2], typical_stream=typical[1], typical_ms=typical[0],
        typical_frames=(typical[3],), fix=CAUSES[cause].fix,
        filter=f"tcp.stream eq {typical[1]} and frame.number in {{{typical[3]}}}",
        sentence=f"setup_{cause}", values={"n": streams, "span_ms": (times[0], times[-1])},
    )  # fmt: skip
