"""Which pushes waited in their sender's kernel, and which unsolicited messages of clients? Rows of one capture in,
one finding per server and sender out.

No request preceded them, so they are part of no latency. But who watches a chat, a feed or a queue sees each that late.
What is needed of their rows is collected batch by batch (`Pushed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap.findings import fixes, quality, socket_options
from latpcap.findings.schema import Finding, grade, wireshark_filter
from latpcap.user_waits import slow_requests
from latpcap.user_waits.cause_totals import endpoint
from latpcap.vocabulary import HALVES, PROVEN, SIDES, STALL, SUSPECTED

if TYPE_CHECKING:
    import pyarrow as pa

    from latpcap.arrays import Array

HELD = "held"
"""The `kind` of gaps in which a client's kernel held an unsolicited message."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "pushes": ("push", "stream", "protocol", "method", *(f"{name}_ms" for name in HALVES)),
    "gaps": ("gap", "stream", "kind"),
    "causes": ("push", "gap", "cause", "duration_ms", "confidence", "evidence"),
}


@dataclass
class HeldPushes:
    """The messages that their senders' kernels held, by number: `ms` in all, of which `proven_ms` are proven and
    `acks_ms` are the peer's held ACKs. `name` is a place in `names`, protocol and method; those of clients have none.
    """

    number: Array
    stream: Array
    by_client: Array
    name: Array
    names: list[tuple[str, str]]
    ms: Array
    proven_ms: Array
    acks_ms: Array
    confidence: Array
    """Of each one's longest piece, as are the frames."""
    _longest: Array
    _causes: pa.Table

    def frames(self, row: int) -> tuple[int, ...]:
        """The segment before it, the ACK of that, and the one that it let go."""
        return tuple(self._causes["evidence"][int(self._longest[row])].as_py())


NOTICES = ("connection.blocked", "connection.unblocked")
"""How an AMQP broker announces that it takes no more messages, and that it does again (RabbitMQ)."""
NOTICE_COLUMNS = ["stream", "method", "start", "first_frame"]


class Pushed:
    """What findings need of pushes; `add` takes the next rows of a table."""

    def __init__(self) -> None:
        import numpy as np

        self._count = np.zeros(0, np.uint32)
        self._kept: dict[str, list[pa.Table]] = {name: [] for name in COLUMNS}
        self._notices: list[pa.Table] = []

    @classmethod
    def of(cls, pushes: pa.Table, gaps: pa.Table, causes: pa.Table) -> Pushed:
        """Those of whole tables."""
        found = cls()
        for name, table in (("pushes", pushes), ("gaps", gaps), ("causes", causes)):
            found.add(name, table)
        return found

    def add(self, name: str, rows: pa.Table) -> None:
        """Takes what matters of the next rows of "pushes", "gaps" or "causes"."""
        if not rows.num_rows:
            return
        if name == "pushes" and (noted := arrays.equals(rows, "method", *NOTICES)).any():
            self._notices.append(rows.select(NOTICE_COLUMNS).take(arrays.column(noted.nonzero()[0])))
        which = {"pushes": self._pushes, "gaps": _gaps, "causes": _causes}[name](rows)
        if which is not None and which.any():
            picked = rows.select(COLUMNS[name]).take(arrays.column(which.nonzero()[0]))
            self._kept[name].append(picked.combine_chunks())

    def _pushes(self, rows: pa.Table) -> Array:
        import numpy as np

        count = np.bincount(arrays.numbers(rows, "stream"), minlength=len(self._count))
        count[: len(self._count)] += self._count
        self._count = count.astype(np.uint32)
        held: Array = sum((arrays.numbers(rows, f"{name}_ms") for name in HALVES), np.zeros(rows.num_rows)) > 0
        return held

    def notices(self) -> pa.Table | None:
        """The pushes of `NOTICES`; None where there are none."""
        import pyarrow as pa

        return pa.concat_tables(self._notices).unify_dictionaries().combine_chunks() if self._notices else None

    def of_streams(self, streams: Array) -> Array:
        """How many pushes had each of these streams?"""
        import numpy as np

        many = np.append(self._count, 0)
        found: Array = many[np.minimum(streams, len(many) - 1)]
        return found

    def held(self) -> HeldPushes | None:
        """The messages that were held; None where none was."""
        import numpy as np
        import pyarrow as pa

        if not self._kept["causes"]:
            return None
        causes = pa.concat_tables(self._kept["causes"]).unify_dictionaries().combine_chunks()
        number, ms = _numbers(causes), arrays.numbers(causes, "duration_ms")
        order = np.lexsort((-ms, number))
        first = np.flatnonzero(np.diff(number[order], prepend=-1))
        longest, which = order[first], np.zeros(len(number), np.int64)
        which[order] = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
        confidence, (cause, texts) = arrays.numbers(causes, "confidence"), arrays.codes(causes, "cause")
        behind = cause == arrays.code_of(texts, HALVES[1])
        sums = [np.bincount(which, ms * part) for part in (1.0, confidence >= PROVEN, behind)]
        rows = self._rows(number[longest])
        if rows is None:
            return None
        there, stream, by_client, name, names = rows
        total, proven, acks = (of[there] for of in sums)
        mine = longest[there]
        return HeldPushes(
            number[mine], stream, by_client, name, names, total, proven, acks, confidence[mine], mine, causes
        )  # fmt: skip

    def _rows(self, number: Array) -> tuple[Array, Array, Array, Array, list[tuple[str, str]]] | None:
        """Which of these numbers have a row in `pushes` or in held `gaps`; of each its stream, sender and name."""
        import numpy as np

        names: dict[tuple[str, str], int] = {}
        found: list[tuple[Array, Array, Array, Array]] = []
        for table in self._kept["pushes"]:
            (spoken, protocols), (method, methods) = (arrays.codes(table, name) for name in ("protocol", "method"))
            pairs, place = np.unique(spoken * (len(methods) + 1) + method + 1, return_inverse=True)
            called = [(protocols[p // (len(methods) + 1)], ["", *methods][p % (len(methods) + 1)]) for p in pairs]
            of = np.array([names.setdefault(one, len(names)) for one in called])[place]
            found.append((*_ends(table, "push"), np.zeros(len(of), bool), of))
        for table in self._kept["gaps"]:
            found.append((*_ends(table, "gap"), np.ones(table.num_rows, bool), np.full(table.num_rows, -1)))
        if not found:
            return None
        known, stream, by_client, name = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(known)
        at = order[np.minimum(np.searchsorted(known[order], number), len(known) - 1)]
        there = known[at] == number
        at = at[there]
        return there, stream[at], by_client[at], name[at], list(names)


def _ends(table: pa.Table, number: str) -> tuple[Array, Array]:
    return arrays.numbers(table, number).astype("int64"), arrays.numbers(table, "stream")


def _gaps(rows: pa.Table) -> Array:
    held: Array = arrays.equals(rows, "kind", HELD)
    return held


def _causes(rows: pa.Table) -> Array | None:
    """The stalls of pushes and gaps."""
    import numpy as np

    if all(rows[link].null_count == rows.num_rows for link in ("push", "gap")):
        return None
    code, texts = arrays.codes(rows, "cause")
    stalls = np.isin(code, [texts.index(name) for name in HALVES if name in texts])
    found: Array = stalls & (_is_there(rows, "push") | _is_there(rows, "gap"))
    return found


def _is_there(rows: pa.Table, link: str) -> Array:
    import numpy as np

    found: Array = ~np.isnan(arrays.numbers(rows, link).astype(float))
    return found


def _numbers(causes: pa.Table) -> Array:
    """Of the push or the gap that each row is of."""
    import numpy as np

    push, gap = (arrays.filled(causes, link, 0).astype("int64") for link in ("push", "gap"))
    found: Array = np.where(_is_there(causes, "push"), push, gap)
    return found


CALLED = {("websocket", "message"): "push_websocket", ("mqtt", "PUBLISH"): "push_mqtt"}
"""Pushes by protocol and method: the id of their name; others are called messages of their protocol."""


def found(
    pushed: Pushed,
    streams: pa.Table,
    pooled: Mapping[tuple[str, int], list[dict[str, Any]]],
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
    limit = [slow_requests.limit(spoken, slow_ms) for *_, spoken in ends]
    groups: dict[tuple[str, int, bool, str | None], list[int]] = {}
    for row in np.flatnonzero((held.ms >= np.array(limit)) & (held.confidence > SUSPECTED)).tolist():
        server, port, spoken = ends[row]
        groups.setdefault((server, port, bool(held.by_client[row]), spoken), []).append(row)
    of = [_of(key, np.array(rows), held, pushed, streams, pooled, checks) for key, rows in groups.items()]
    return sorted((f for f in of if f is not None), key=lambda f: -(f.total_ms or 0.0))


def _of(
    key: tuple[str, int, bool, str | None], rows: Array, held: HeldPushes, pushed: Pushed, streams: pa.Table,
    pooled: Mapping[tuple[str, int], list[dict[str, Any]]], checks: Sequence[quality.Check],
) -> Finding | None:  # fmt: skip
    import numpy as np

    server, port, by_client, spoken = key
    sender, mine = SIDES["server"] if by_client else "server", pooled.get((server, port), [])
    rows = rows[np.argsort(held.ms[rows], kind="stable")]
    took, proven = held.ms[rows], held.proven_ms[rows]
    sure = _how_sure(held, rows, checks, socket_options.pool(mine, sender).acts)
    if sure <= SUSPECTED:
        return None
    word = grade(STALL, sure)
    (address, addresses), ports = arrays.codes(streams, "server"), arrays.numbers(streams, "server_port")
    protocol, protocols = arrays.codes(streams, "protocol")
    alike = protocol == (protocols.index(spoken) if spoken is not None else -1)
    here = np.flatnonzero((address == addresses.index(server)) & (ports == port) & alike)
    numbers = arrays.numbers(streams, "stream")[here]
    each = pushed.of_streams(numbers)
    [(client,)] = arrays.looked_up(streams, "stream", held.stream[rows[-1:]], ("client",))
    middle, last = rows[len(rows) // 2], rows[-1]
    frames, stream = held.frames(int(middle)), int(held.stream[middle])
    nodelay, acks = socket_options.nodelay(mine, sender), socket_options.delayed_ack(mine, sender)
    timer = socket_options.timer(socket_options.pool(mine, sender))
    mend = fixes.of_pushes(sender, _software(streams, here), spoken)
    sentence = _pushed_sentence(endpoint(server, port), held, rows, int(each.sum()), spoken, words.say(f"sure_{word}"))
    return Finding(
        kind="push", server=server, server_port=port, cause=STALL, owner=sender, held_by=SIDES[sender], client=client,
        exchanges=len(rows), of_exchanges=int(each.sum()),
        streams=len(arrays.distinct(held.stream[rows])),
        of_streams=int((each > 0).sum()) or None, total_ms=float(took.sum()), median_ms=arrays.percentile(took, 0.5),
        p10_ms=arrays.percentile(took, 0.1), p90_ms=arrays.percentile(took, 0.9), max_ms=float(took[-1]),
        grade=word, confidence=sure, proven=int((held.confidence[rows] >= PROVEN).sum()),
        worst_stream=int(held.stream[last]), worst_ms=float(held.ms[last]), worst_frames=held.frames(int(last)),
        typical_stream=stream, typical_ms=float(held.ms[middle]), typical_frames=frames,
        filter=wireshark_filter(stream, *frames), sender=sender,
        nodelay=nodelay.state, nodelay_seen_on=nodelay.seen_on, nodelay_seen_off=nodelay.seen_off,
        nodelay_opportunities=nodelay.opportunities, nodelay_streams_on=nodelay.streams_on,
        nodelay_streams_off=nodelay.streams_off, delayed_ack=acks.state, delayed_ack_seen_on=acks.seen_on,
        delayed_ack_seen_off=acks.seen_off, delayed_ack_opportunities=acks.opportunities,
        hold_min_ms=timer.hold_min_ms, hold_median_ms=timer.hold_median_ms, hold_max_ms=timer.hold_max_ms,
        timer_ms=timer.timer_ms, tick_ms=timer.tick_ms, tick_p=timer.tick_p, os_hint=timer.os_hint,
        fix=mend.knob, fix_side=mend.side, fix_cost=mend.cost, gain_p50_low_ms=0.0,
        gain_p50_high_ms=arrays.percentile(np.sort(took - proven), 0.5), text=sentence,
    )  # fmt: skip


def _how_sure(held: HeldPushes, rows: Array, checks: Sequence[quality.Check], acts: bool) -> float:
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


def _pushed_sentence(server: str, held: HeldPushes, rows: Array, pushed: int, spoken: str | None, sure: str) -> str:
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
