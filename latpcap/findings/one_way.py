"""What can one direction alone let us suspect? Events of streams of which only one side was captured; hints out.

A gap between two small segments in which the sender heard from its peer (its echoed time stamp moved) may be Nagle's
wait for a held ACK, or a pause of the program in which an ACK happened to come. Which one it was, the other direction
would tell. So nothing here is ever more than suspected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from latpcap import arrays, quality
from latpcap.findings.spent import SIDES
from latpcap.vocabulary import STALL

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

HELD_MS = (35.0, 90.0)
"""A held ACK, its way and the path's: where the path is not known."""
HEARD_TICKS = 20
FEW = 3
SURE = {"data": 0.5, "acks": 0.4}


def suspects(tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    """Servers at which a stall is suspected from one direction alone, and the side whose packets were captured."""
    import numpy as np

    streams, events = tables["streams"], tables["events"]
    alone = [s for s, one in zip(streams["stream"].to_pylist(), quality.one_way(streams), strict=True) if one]
    if not alone:
        return []
    place = {s: i for i, s in enumerate(streams["stream"].to_pylist())}
    names, ports = streams["server"].to_pylist(), streams["server_port"].to_pylist()
    stream = arrays.numbers(events, "stream")
    rows = np.flatnonzero(np.isin(stream, alone))
    rows = rows[np.argsort(stream[rows], kind="stable")]
    columns = {c: arrays.numbers(events, c)[rows] for c in ("time", "stream", "len", "seq", "ack", "tsecr", "frame")}
    by_client = arrays.numbers(events, "from_client")[rows].astype(bool)
    groups: dict[tuple[str, int, str, str], list[tuple[float, int, int, int]]] = defaultdict(list)
    for how, pairs in (("data", _paused(columns)), ("acks", _held(columns))):
        for first, second in pairs:
            at = place[int(columns["stream"][second])]
            seen = "client" if by_client[second] else "server"
            ms = (columns["time"][second] - columns["time"][first]) / 1e6
            found = (float(ms), int(columns["stream"][second]), int(columns["frame"][first]))
            groups[names[at], ports[at], seen, how].append((*found, int(columns["frame"][second])))
    return [_row(*key, seen) for key, seen in sorted(groups.items(), key=lambda g: -len(g[1])) if len(seen) >= FEW]


def _paused(of: dict[str, Array]) -> list[tuple[int, int]]:
    """Neighbouring data segments with a timer's gap between them, in which the sender heard from its peer."""
    import numpy as np

    data = np.flatnonzero(of["len"] > 0)
    first, second = data[:-1], data[1:]
    ms = (of["time"][second] - of["time"][first]) / 1e6
    heard = of["tsecr"][second] - of["tsecr"][first] >= HEARD_TICKS
    good = (of["stream"][first] == of["stream"][second]) & (ms >= HELD_MS[0]) & (ms <= HELD_MS[1]) & heard
    good &= of["seq"][second] == of["seq"][first] + of["len"][first]
    good &= of["ack"][second] == of["ack"][first]  # else the peer spoke in between: the border of two messages
    return list(zip(first[good].tolist(), second[good].tolist(), strict=True))


def _held(of: dict[str, Array]) -> list[tuple[int, int]]:
    """Pure ACKs of something small that came a timer's time after their sender's last packet."""
    import numpy as np

    second = np.arange(1, len(of["time"]))
    first = second - 1
    ms = (of["time"][second] - of["time"][first]) / 1e6
    more = of["ack"][second] - of["ack"][first]
    good = (of["stream"][first] == of["stream"][second]) & (ms >= HELD_MS[0]) & (ms <= HELD_MS[1])
    good &= (of["len"][second] == 0) & (more > 0) & (more < 1448)
    return list(zip(first[good].tolist(), second[good].tolist(), strict=True))


def _row(
    server: str, port: int, seen_side: str, how: str, seen: list[tuple[float, int, int, int]]
) -> dict[str, Any]:  # fmt: skip
    import numpy as np

    seen.sort()
    ms = np.array([s[0] for s in seen])
    typical = seen[len(seen) // 2]
    sender = seen_side if how == "data" else SIDES[seen_side]
    what = (
        "paused {n} times between two segments while it heard from its peer" if how == "data" else "held {n} ACKs back"
    )
    told = what.format(n=f"{len(seen):,}")
    says = (
        f"the {seen_side} {told} ({ms[0]:.1f}-{ms[-1]:.1f} ms): Nagle on the {sender} and delayed ACKs "
        f"of the {SIDES[sender]} are suspected; without the {SIDES[seen_side]}'s packets nobody can tell"
    )
    return {
        "kind": "one_way", "server": server, "server_port": port, "cause": STALL, "owner": sender,
        "held_by": SIDES[sender], "streams": len({s[1] for s in seen}), "total_ms": float(ms.sum()),
        "median_ms": arrays.percentile(ms, 0.5), "p10_ms": arrays.percentile(ms, 0.1),
        "p90_ms": arrays.percentile(ms, 0.9), "max_ms": float(ms[-1]), "grade": "suspected",
        "confidence": SURE[how], "limited_by": ["one_direction"], "sender": sender, "nodelay": "unknown",
        "delayed_ack": "unknown", "rival": f"the {sender}'s program pauses between its writes",
        "rival_lost": "not ruled out: the other direction is not in the capture", "typical_stream": typical[1],
        "typical_ms": typical[0], "typical_frames": [typical[2], typical[3]],
        "filter": f"tcp.stream eq {typical[1]} and frame.number in {{{typical[2]}, {typical[3]}}}", "says": says,
    }  # fmt: skip
