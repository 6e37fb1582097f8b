"""Findings about unsolicited messages that waited in their sender's kernel (Nagle's algorithm and a held ACK).

They are pushes of servers and messages of clients without a response. No request precedes them, so no latency contains
the wait, but the users of a chat, a feed or a queue see each message late. `Pushed` collects rows batch by batch;
`find` returns one finding per server, sender and protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from latpcap import arrays, words
from latpcap.findings import fixes, quality, socket_options
from latpcap.findings.schema import Finding, grade, wireshark_filter
from latpcap.format import endpoint
from latpcap.lazy import np, pa
from latpcap.user_waits import slow_requests
from latpcap.vocabulary import HALVES, PROVEN, SIDES, STALL, SUSPECTED

if TYPE_CHECKING:
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
    """Columns with one row per held message: `ms` is its whole wait, with its `proven_ms`, and `acks_ms` of held ACKs.

    `name` indexes `names` (protocol, method); -1 for messages of clients.
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
    """Confidence of the longest piece of each wait; `frames` are of that piece as well."""
    _longest: Array
    _causes: pa.Table

    def frames(self, row: int) -> tuple[int, ...]:
        """Return the segment before the message, its ACK, and the segment that the ACK released."""
        return tuple(self._causes["evidence"][int(self._longest[row])].as_py())


NOTICES = ("connection.blocked", "connection.unblocked")
"""AMQP methods by which RabbitMQ asks publishers to stop and to go on."""
NOTICE_COLUMNS = ["stream", "method", "start", "first_frame"]


class Pushed:
    """Rows of "pushes", "gaps" and "causes" that findings need; `add` takes the next rows of a table."""

    def __init__(self) -> None:
        self._count = np.zeros(0, np.uint32)
        self._kept: dict[str, list[pa.Table]] = {name: [] for name in COLUMNS}
        self._notices: list[pa.Table] = []

    @classmethod
    def of(cls, pushes: pa.Table, gaps: pa.Table, causes: pa.Table) -> Pushed:
        """Collect from whole tables."""
        pushed = cls()
        for name, table in (("pushes", pushes), ("gaps", gaps), ("causes", causes)):
            pushed.add(name, table)
        return pushed

    def add(self, name: str, rows: pa.Table) -> None:
        """Collect what findings need of the next rows of "pushes", "gaps" or "causes"."""
        if not rows.num_rows:
            return
        if name == "pushes" and (is_notice := arrays.equals(rows, "method", *NOTICES)).any():
            self._notices.append(rows.select(NOTICE_COLUMNS).take(arrays.column(is_notice.nonzero()[0])))
        if name == "pushes":
            is_needed = self._count_pushes(rows)
        elif name == "gaps":
            is_needed = arrays.equals(rows, "kind", HELD)
        else:
            is_needed = _is_stall(rows)
        if is_needed.any():
            picked = rows.select(COLUMNS[name]).take(arrays.column(is_needed.nonzero()[0]))
            self._kept[name].append(picked.combine_chunks())

    def _count_pushes(self, rows: pa.Table) -> Array:
        """Count the pushes per stream and return a mask of those that waited in their sender's kernel."""
        count = np.bincount(arrays.numbers(rows, "stream"), minlength=len(self._count))
        count[: len(self._count)] += self._count
        self._count = count.astype(np.uint32)
        return sum((arrays.numbers(rows, f"{name}_ms") for name in HALVES), np.zeros(rows.num_rows)) > 0

    def notices(self) -> pa.Table | None:
        """Return the pushes whose method is one of `NOTICES`; None without any."""
        return pa.concat_tables(self._notices).unify_dictionaries().combine_chunks() if self._notices else None

    def of_streams(self, streams: Array) -> Array:
        """Return the number of pushes of each of these streams."""
        count = np.append(self._count, 0)  # a stream beyond the last one with pushes has none
        return count[np.minimum(streams, len(count) - 1)]

    def held(self) -> HeldPushes | None:
        """Return the messages that were held; None without any."""
        if not self._kept["causes"]:
            return None
        causes = pa.concat_tables(self._kept["causes"]).unify_dictionaries().combine_chunks()
        number, ms = _numbers(causes), arrays.numbers(causes, "duration_ms")
        order = np.lexsort((-ms, number))
        first = np.flatnonzero(np.diff(number[order], prepend=-1))
        longest, message = order[first], np.zeros(len(number), np.int64)
        message[order] = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
        confidence, (cause, texts) = arrays.numbers(causes, "confidence"), arrays.codes(causes, "cause")
        is_ack = cause == arrays.code_of(texts, HALVES[1])
        sums = [np.bincount(message, ms * factor) for factor in (1.0, confidence >= PROVEN, is_ack)]
        rows = self._rows(number[longest])
        if rows is None:
            return None
        is_known, stream, by_client, name, names = rows
        total, proven, acks = (column[is_known] for column in sums)
        longest = longest[is_known]
        return HeldPushes(
            number[longest], stream, by_client, name, names, total, proven, acks, confidence[longest], longest, causes
        )  # fmt: skip

    def _rows(self, number: Array) -> tuple[Array, Array, Array, Array, list[tuple[str, str]]] | None:
        """Return which of these numbers are of collected pushes or gaps, with their streams, senders and names."""
        names: dict[tuple[str, str], int] = {}
        parts: list[tuple[Array, Array, Array, Array]] = []
        for table in self._kept["pushes"]:
            (protocol, protocols), (method, methods) = (arrays.codes(table, name) for name in ("protocol", "method"))
            pairs, index = np.unique(protocol * (len(methods) + 1) + method + 1, return_inverse=True)
            called = [
                (protocols[pair // (len(methods) + 1)], ["", *methods][pair % (len(methods) + 1)]) for pair in pairs
            ]
            codes = np.array([names.setdefault(pair, len(names)) for pair in called])[index]
            parts.append((*_ids(table, "push"), np.zeros(len(codes), bool), codes))
        for table in self._kept["gaps"]:
            parts.append((*_ids(table, "gap"), np.ones(table.num_rows, bool), np.full(table.num_rows, -1)))
        if not parts:
            return None
        numbers_known, stream, by_client, name = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(numbers_known)
        row = order[np.minimum(np.searchsorted(numbers_known[order], number), len(numbers_known) - 1)]
        is_known = numbers_known[row] == number
        row = row[is_known]
        return is_known, stream[row], by_client[row], name[row], list(names)


def _ids(table: pa.Table, number: str) -> tuple[Array, Array]:
    return arrays.numbers(table, number).astype("int64"), arrays.numbers(table, "stream")


def _is_stall(rows: pa.Table) -> Array:
    """Return a mask of the causes that are stalls of a push or a gap."""
    if all(rows[link].null_count == rows.num_rows for link in ("push", "gap")):
        return np.zeros(rows.num_rows, bool)
    code, texts = arrays.codes(rows, "cause")
    stalls = np.isin(code, [texts.index(name) for name in HALVES if name in texts])
    return stalls & (_is_known(rows, "push") | _is_known(rows, "gap"))


def _is_known(rows: pa.Table, link: str) -> Array:
    return ~np.isnan(arrays.numbers(rows, link).astype(float))


def _numbers(causes: pa.Table) -> Array:
    """Return the number of the push or gap that each cause belongs to."""
    push, gap = (arrays.filled(causes, link, 0).astype("int64") for link in ("push", "gap"))
    return np.where(_is_known(causes, "push"), push, gap)


MESSAGE_IDS = {("websocket", "message"): "push_websocket", ("mqtt", "PUBLISH"): "push_mqtt"}
"""Id of the words for a push, by protocol and method; others are called messages of their protocol."""


def find(
    pushed: Pushed,
    streams: pa.Table,
    evidence: Mapping[tuple[str, int], list[dict[str, Any]]],
    checks: Sequence[quality.Check],
    slow_ms: float | None = None,
) -> list[Finding]:
    """Return senders whose messages waited as long as a slow request, by server and protocol, the most time first."""
    held = pushed.held()
    if held is None:
        return []
    ends = arrays.looked_up(streams, "stream", held.stream, ("server", "server_port", "protocol"))
    limits = [slow_requests.limit_ms(protocol, slow_ms) for *_, protocol in ends]
    groups: dict[tuple[str, int, bool, str | None], list[int]] = {}
    for row in np.flatnonzero((held.ms >= np.array(limits)) & (held.confidence > SUSPECTED)).tolist():
        server, port, protocol = ends[row]
        groups.setdefault((server, port, bool(held.by_client[row]), protocol), []).append(row)
    findings = [_finding(key, np.array(rows), held, pushed, streams, evidence, checks) for key, rows in groups.items()]
    return sorted(filter(None, findings), key=lambda finding: -(finding.total_ms or 0.0))


def _finding(
    key: tuple[str, int, bool, str | None], rows: Array, held: HeldPushes, pushed: Pushed, streams: pa.Table,
    evidence: Mapping[tuple[str, int], list[dict[str, Any]]], checks: Sequence[quality.Check],
) -> Finding | None:  # fmt: skip
    """Return the finding of one server, sender and protocol; None where it is no more than suspected."""
    server, port, by_client, protocol = key
    sender, evidence_rows = SIDES["server"] if by_client else "server", evidence.get((server, port), [])
    rows = rows[np.argsort(held.ms[rows], kind="stable")]
    waits_ms, proven = held.ms[rows], held.proven_ms[rows]
    confidence = _confidence(held, rows, checks, socket_options.pool(evidence_rows, sender).acts)
    if confidence <= SUSPECTED:
        return None
    verdict = grade(STALL, confidence)
    (address, addresses), ports = arrays.codes(streams, "server"), arrays.numbers(streams, "server_port")
    protocol_code, protocols = arrays.codes(streams, "protocol")
    same_protocol = protocol_code == (protocols.index(protocol) if protocol is not None else -1)
    stream_rows = np.flatnonzero((address == addresses.index(server)) & (ports == port) & same_protocol)
    stream_numbers = arrays.numbers(streams, "stream")[stream_rows]
    push_counts = pushed.of_streams(stream_numbers)
    [(client,)] = arrays.looked_up(streams, "stream", held.stream[rows[-1:]], ("client",))
    median_row, worst_row = rows[len(rows) // 2], rows[-1]
    frames, stream = held.frames(int(median_row)), int(held.stream[median_row])
    nodelay, acks = socket_options.nodelay(evidence_rows, sender), socket_options.delayed_ack(evidence_rows, sender)
    timer = socket_options.timer(socket_options.pool(evidence_rows, sender))
    [software] = arrays.taken(streams, "server_software", stream_rows[:1]).to_pylist()
    fix = fixes.of_pushes(sender, software or None, protocol)
    grade_phrase = words.say(f"sure_{verdict}")
    sentence = _pushed_sentence(endpoint(server, port), held, rows, int(push_counts.sum()), protocol, grade_phrase)
    return Finding(
        kind="push", server=server, server_port=port, cause=STALL, owner=sender, held_by=SIDES[sender], client=client,
        exchanges=len(rows), of_exchanges=int(push_counts.sum()), streams=len(arrays.distinct(held.stream[rows])),
        of_streams=int((push_counts > 0).sum()) or None, total_ms=float(waits_ms.sum()),
        median_ms=arrays.percentile(waits_ms, 0.5), p10_ms=arrays.percentile(waits_ms, 0.1),
        p90_ms=arrays.percentile(waits_ms, 0.9), max_ms=float(waits_ms[-1]),
        grade=verdict, confidence=confidence, proven=int((held.confidence[rows] >= PROVEN).sum()),
        worst_stream=int(held.stream[worst_row]), worst_ms=float(held.ms[worst_row]),
        worst_frames=held.frames(int(worst_row)), typical_stream=stream,
        typical_ms=float(held.ms[median_row]), typical_frames=frames, filter=wireshark_filter(stream, *frames),
        sender=sender, **nodelay.columns("nodelay"), **acks.columns("delayed_ack"), **asdict(timer),
        fix=fix.knob, fix_side=fix.side, fix_cost=fix.cost, gain_p50_low_ms=0.0,
        gain_p50_high_ms=arrays.percentile(np.sort(waits_ms - proven), 0.5), text=sentence,
    )  # fmt: skip


def _confidence(held: HeldPushes, rows: Array, checks: Sequence[quality.Check], nagle_acts: bool) -> float:
    """Return the median confidence of the messages, at most what the capture's quality allows."""
    if any(check.forbids for check in checks):
        return 0.0
    # a stall that the table of evidence confirms is one in a capture with duplicated packets, too
    ceiling = min((check.most for check in checks if not (nagle_acts and check.check == "doubles")), default=1.0)
    return min(float(np.sort(held.confidence[rows])[(len(rows) - 1) // 2]), ceiling)


def _pushed_sentence(
    server: str, held: HeldPushes, rows: Array, push_count: int, protocol: str | None, grade_phrase: str
) -> str:
    waits_ms, by_client = held.ms[rows], bool(held.by_client[rows[0]])
    by_held_acks = bool(2 * held.acks_ms[rows].sum() > waits_ms.sum())
    side = "client" if by_client else "server"
    until = words.say(f"acks_held_for_{side}" if by_held_acks else "acks")
    median, total = arrays.percentile(waits_ms, 0.5), float(waits_ms.sum())
    wait = words.say("push_waits" if len(rows) > 1 else "push_wait", median_ms=median, sum_ms=total)
    values = {"n": len(rows), "of": push_count, "server": server, "sure": grade_phrase, "until": until, "wait": wait}
    if by_client:
        return words.say("unasked_mqtt" if protocol == "mqtt" else "unasked", **values)
    names = {held.names[index] for index in arrays.distinct(held.name[rows]).tolist()}
    kinds = sorted({words.say(MESSAGE_IDS.get(name, "push_message"), protocol=name[0], n=push_count) for name in names})
    message_kind = kinds[0] if len(kinds) == 1 else words.say("push_messages", n=push_count)
    return words.say("pushed", kind=message_kind, **values)
