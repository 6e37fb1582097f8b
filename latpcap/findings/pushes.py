"""Which pushes waited in their sender's kernel, and which messages that clients sent unasked? Rows of one capture in,
one finding per server and sender out.

Nobody asked for them, so they are part of no latency. But who watches a chat, a feed or a queue sees each that late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap.findings import fixes, quality, sockets
from latpcap.findings import presentation as show
from latpcap.findings.pushed import Held, Pushed
from latpcap.findings.schema import Finding, Grade
from latpcap.findings.totals import SIDES, endpoint
from latpcap.vocabulary import PROVEN, STALL, SUSPECTED

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

CALLED = {("websocket", "message"): "push_websocket", ("mqtt", "PUBLISH"): "push_mqtt"}
"""Pushes by protocol and method: the id of their name; others are called messages of their protocol."""


def found(
    pushed: Pushed,
    streams: pa.Table,
    evidence: Mapping[tuple[str, int], list[dict[str, Any]]],
    checks: Sequence[quality.Check],
    slow_ms: float | None = None,
) -> list[Finding]:
    """Senders whose messages waited so long that a request would be slow; by server and protocol, the most time
    first.
    """
    held = pushed.held()
    if held is None:
        return []
    import numpy as np

    ends = arrays.looked_up(streams, "stream", held.stream, ("server", "server_port", "protocol"))
    limit = [show.SLOW_MS.get(spoken, show.SLOW_OTHER_MS) if slow_ms is None else slow_ms for *_, spoken in ends]
    groups: dict[tuple[str, int, bool, str | None], list[int]] = {}
    for row in np.flatnonzero((held.ms >= np.array(limit)) & (held.confidence > SUSPECTED)).tolist():
        server, port, spoken = ends[row]
        groups.setdefault((server, port, bool(held.by_client[row]), spoken), []).append(row)
    of = [_of(key, np.array(rows), held, pushed, streams, evidence, checks) for key, rows in groups.items()]
    return sorted((f for f in of if f is not None), key=lambda f: -(f.total_ms or 0.0))


def _of(
    key: tuple[str, int, bool, str | None], rows: Array, held: Held, pushed: Pushed, streams: pa.Table,
    evidence: Mapping[tuple[str, int], list[dict[str, Any]]], checks: Sequence[quality.Check],
) -> Finding | None:  # fmt: skip
    import numpy as np

    server, port, by_client, spoken = key
    sender, mine = SIDES["server"] if by_client else "server", evidence.get((server, port), [])
    rows = rows[np.argsort(held.ms[rows], kind="stable")]
    took, proven = held.ms[rows], held.proven_ms[rows]
    sure = _how_sure(held, rows, checks, sockets.pool(mine, sender).acts)
    if sure <= SUSPECTED:
        return None
    grade: Grade = "proven" if sure >= PROVEN else "probable"
    (address, addresses), ports = arrays.codes(streams, "server"), arrays.numbers(streams, "server_port")
    protocol, protocols = arrays.codes(streams, "protocol")
    alike = protocol == (protocols.index(spoken) if spoken is not None else -1)
    here = np.flatnonzero((address == addresses.index(server)) & (ports == port) & alike)
    numbers = arrays.numbers(streams, "stream")[here]
    each = pushed.of_streams(numbers)
    [(client,)] = arrays.looked_up(streams, "stream", held.stream[rows[-1:]], ("client",))
    middle, last = rows[len(rows) // 2], rows[-1]
    frames, stream = held.frames(int(middle)), int(held.stream[middle])
    nodelay, acks = sockets.nodelay(mine, sender), sockets.delayed_ack(mine, sender)
    timer = sockets.timer(sockets.pool(mine, sender))
    mend = fixes.of_pushes(sender, _software(streams, here), spoken)
    says = _says(endpoint(server, port), held, rows, int(each.sum()), spoken, words.say(f"sure_{grade}"))
    return Finding(
        kind="push", server=server, server_port=port, cause=STALL, owner=sender, held_by=SIDES[sender], client=client,
        exchanges=len(rows), of_exchanges=int(each.sum()),
        streams=len(arrays.distinct(held.stream[rows])),
        of_streams=int((each > 0).sum()) or None, total_ms=float(took.sum()), median_ms=arrays.percentile(took, 0.5),
        p10_ms=arrays.percentile(took, 0.1), p90_ms=arrays.percentile(took, 0.9), max_ms=float(took[-1]),
        grade=grade, confidence=sure, proven=int((held.confidence[rows] >= PROVEN).sum()),
        worst_stream=int(held.stream[last]), worst_ms=float(held.ms[last]), worst_frames=held.frames(int(last)),
        typical_stream=stream, typical_ms=float(held.ms[middle]), typical_frames=frames,
        filter=f"tcp.stream eq {stream} and frame.number in {{{', '.join(map(str, frames))}}}", sender=sender,
        nodelay=nodelay.state, nodelay_seen_on=nodelay.seen_on, nodelay_seen_off=nodelay.seen_off,
        nodelay_opportunities=nodelay.opportunities, nodelay_streams_on=nodelay.streams_on,
        nodelay_streams_off=nodelay.streams_off, delayed_ack=acks.state, delayed_ack_seen_on=acks.seen_on,
        delayed_ack_seen_off=acks.seen_off, delayed_ack_opportunities=acks.opportunities,
        hold_min_ms=timer.hold_min_ms, hold_median_ms=timer.hold_median_ms, hold_max_ms=timer.hold_max_ms,
        timer_ms=timer.timer_ms, tick_ms=timer.tick_ms, tick_p=timer.tick_p, os_hint=timer.os_hint,
        fix=mend.knob, fix_side=mend.side, fix_cost=mend.cost, gain_p50_low_ms=0.0,
        gain_p50_high_ms=arrays.percentile(np.sort(took - proven), 0.5), says=says,
    )  # fmt: skip


def _how_sure(held: Held, rows: Array, checks: Sequence[quality.Check], acts: bool) -> float:
    """That of the message in the middle, no surer than the capture's quality allows."""
    import numpy as np

    if any(c.forbids for c in checks):
        return 0.0
    # (a stall whose evidence holds together in a doubled capture is one)
    most = min((c.most for c in checks if not (acts and c.check == "doubles")), default=1.0)
    return min(float(np.sort(held.confidence[rows])[(len(rows) - 1) // 2]), most)


def _software(streams: pa.Table, here: Array) -> str | None:
    known = [word for word in arrays.taken(streams, "server_software", here[:1]).to_pylist() if word]
    return known[0] if known else None


def _says(server: str, held: Held, rows: Array, pushed: int, spoken: str | None, sure: str) -> str:
    took, by_client = held.ms[rows], bool(held.by_client[rows[0]])
    late = bool(2 * held.acks_ms[rows].sum() > took.sum())
    side = "client" if by_client else "server"
    until = words.say(f"acks_held_for_{side}" if late else "acks")
    median, total = arrays.percentile(took, 0.5), float(took.sum())
    wait = words.say("push_waits" if len(rows) > 1 else "push_wait", median_ms=median, sum_ms=total)
    values = {"n": len(rows), "of": pushed, "server": server, "sure": sure, "until": until, "wait": wait}
    if by_client:
        return words.say("unasked_mqtt" if spoken == "mqtt" else "unasked", **values)
    names = {held.names[place] for place in arrays.distinct(held.name[rows]).tolist()}
    kinds = sorted({words.say(CALLED.get(name, "push_message"), protocol=name[0], n=pushed) for name in names})
    kind = kinds[0] if len(kinds) == 1 else words.say("push_messages", n=pushed)
    return words.say("pushed", kind=kind, **values)
