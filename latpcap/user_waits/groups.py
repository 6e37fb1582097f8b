"""The table "groups": requests that are one thing to the user.

Groups are pipelines, statements, transactions, and what lasts long: event streams, subscriptions, long polls in a row.
An exchange is in one group at most. Only protocols that answer in the order of the requests have pipelines and
transactions; in others, concurrent requests need not be related.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from latpcap import arrays
from latpcap.lazy import np, pa
from latpcap.tables import NS_PER_MS
from latpcap.vocabulary import cause_names, protocol_names

if TYPE_CHECKING:
    from latpcap.options import TableName

READS: tuple[TableName, ...] = ("exchanges", "causes", "gaps", "streams")
"""The tables that groups are computed from."""
ENDS = {"MULTI": ("EXEC", "DISCARD")} | dict.fromkeys(("BEGIN", "START"), ("COMMIT", "ROLLBACK", "END", "ABORT"))
"""The methods that begin a transaction, and those that end it."""
PREPARES = ("PREPARE", "DESCRIBE")
"""Methods that prepare or describe a statement before it is executed."""
STEPS = (*PREPARES, "RESET")
"""Methods on a statement that do not execute it."""
SUBSCRIBES = ("BASIC.CONSUME", "SUB", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE")
"""Requests answered at once whose messages follow later: AMQP, NATS, MQTT, STOMP, Redis, RabbitMQ's streams. Calls of
JSON-RPC have the word in their name ("eth_subscribe")."""
STREAM, POLL = "event_stream", "long_poll"
GOES_ON = (STREAM, "subscription", POLL)
"""Kinds of groups that have pieces."""
SHOWN = 5
"""Upper bound on the targets named per group; an ellipsis replaces the rest."""
NAMES = (
    "exchange", "stream", "index", "client", "client_port", "server", "server_port", "protocol", "method", "target",
    "error", "complete", "kind", "pieces", "first_chunk_ms", "longest_gap_ms",
)  # fmt: skip


@dataclass(slots=True)
class Row:
    """One exchange; instants in ns."""

    exchange: int
    stream: int
    index: int
    client: str
    client_port: int
    server: str
    server_port: int
    protocol: str
    method: str | None
    target: str | None
    error: bool | None
    complete: bool
    kind: str | None
    pieces: int | None
    first_chunk_ms: float | None
    longest_gap_ms: float | None
    start: int
    end: int
    request_end: int
    answered: int | None

    @property
    def word(self) -> str:
        """Its method in capital letters."""
        return (self.method or "").upper()

    @property
    def subscribes(self) -> bool:
        """Whether it is a subscription whose messages followed."""
        call = self.protocol == "json-rpc" and "SUBSCRIBE" in self.word
        is_named = call or self.word in SUBSCRIBES
        return is_named and bool(self.pieces) and self.kind in ("request", STREAM)


@dataclass(slots=True)
class Group:
    """Some exchanges of one stream, in the order of their requests."""

    kind: str
    rows: list[Row]
    until: int = 0
    """The end of its stream in ns, for a group that lasts until then; else 0."""

    @property
    def span(self) -> tuple[int, int]:
        """Its begin and the end of its last answer, in ns."""
        return self.rows[0].start, max(self.until, *(row.end for row in self.rows))

    @property
    def closed(self) -> bool:
        """Whether it was captured completely, including a transaction's end."""
        over = self.kind != "transaction" or self.rows[-1].word in ENDS[self.rows[0].word]
        return over and all(row.complete for row in self.rows)

    def pieces(self) -> tuple[int | None, float | None, float | None]:
        """Return the number of pieces, the ms until the first, and the longest pause; for polls of answers."""
        first = self.rows[0]
        if self.kind not in GOES_ON:
            return None, None, None
        if self.kind != POLL:
            return first.pieces, first.first_chunk_ms, first.longest_gap_ms
        ends = sorted(row.end for row in self.rows if row.answered is not None)
        gaps = [(end - before) / NS_PER_MS for before, end in pairwise(ends)]
        return len(ends), (ends[0] - first.start) / NS_PER_MS if ends else None, max(gaps, default=None)

    def between(self) -> int:
        """Return the time in ns without a request under way, which is the client's own."""
        start, end = self.span
        if self.until:
            return 0
        return end - start - _union([(row.start, row.end) for row in self.rows])


def find_groups(tables: Mapping[str, pa.Table]) -> list[Group]:
    """Return the groups of a capture, in order of time. `tables`: those of `READS`."""
    exchanges = tables["exchanges"]
    groups: list[Group] = []
    in_order = set(protocol_names("in_order"))
    ends = dict(zip(*(tables["streams"][name].to_pylist() for name in ("stream", "end")), strict=True))
    for rows in _by_stream(exchanges.filter(_grouped(exchanges, in_order))):
        stream_end = ends.get(rows[0].stream)
        groups += (polled := list(_going_on(rows, stream_end.value if stream_end is not None else 0)))
        grouped_exchanges = {row.exchange for group in polled for row in group.rows}
        groups += _groups([row for row in rows if row.protocol in in_order and row.exchange not in grouped_exchanges])
    return sorted(groups, key=lambda group: (group.rows[0].start, group.rows[0].exchange))


def _grouped(exchanges: pa.Table, in_order: Collection[str]) -> Any:
    """Return which rows may be in a group."""
    method, methods = arrays.codes(exchanges, "method")
    called = [*("SUBSCRIBE" in (word or "").upper() or (word or "").upper() in SUBSCRIBES for word in methods), False]
    subscribes = np.array(called)[method]
    return arrays.equals(exchanges, "protocol", *in_order) | arrays.equals(exchanges, "kind", STREAM, POLL) | subscribes


def _going_on(rows: Sequence[Row], end: int) -> Iterator[Group]:
    """Yield the event streams, subscriptions and long polls of one stream, which ended at `end`."""
    polls: dict[str, list[Row]] = {}
    for row in rows:
        if row.subscribes:
            yield Group("subscription", [row], end)
        elif row.kind == STREAM:
            yield Group(STREAM, [row])
        elif row.kind == POLL:
            polls.setdefault(row.word, []).append(row)
    yield from (Group(POLL, some) for some in polls.values() if len(some) > 1)


def _by_stream(exchanges: pa.Table) -> Iterator[list[Row]]:
    columns = {name: exchanges[name].to_pylist() for name in NAMES}
    instants = {name: arrays.numbers(exchanges, name).tolist() for name in ("start", "end", "request_end")}
    answered = [value and value.value for value in exchanges["response_start"].to_pylist()]
    order = np.lexsort((arrays.numbers(exchanges, "index"), arrays.numbers(exchanges, "stream"))).tolist()
    rows: list[Row] = []
    for index in order:
        row = Row(
            **{name: column[index] for name, column in columns.items()},
            **{name: column[index] for name, column in instants.items()},
            answered=answered[index],
        )
        if rows and rows[0].stream != row.stream:
            yield rows
            rows = []
        if row.kind != "handshake":
            rows.append(row)
    if rows:
        yield rows


def _groups(rows: Sequence[Row]) -> Iterator[Group]:
    """Yield the transactions, statements and pipelines of one stream."""
    index = 0
    while index < len(rows):
        kind, length = next(
            (kind, length)
            for kind, length in (
                ("transaction", _transaction(rows, index)),
                ("statement", _statement(rows, index)),
                ("pipeline", _pipeline(rows, index)),
                ("", 1),
            )
            if length > 1 or not kind
        )
        if kind:
            yield Group(kind, list(rows[index : index + length]))
        index += length


def _transaction(rows: Sequence[Row], index: int) -> int:
    """Return how many rows from `index` on are one transaction; without an end it reaches the stream's end."""
    ends = ENDS.get(rows[index].word)
    if ends is None:
        return 0
    for later in range(index + 1, len(rows)):
        row = rows[later]
        # ROLLBACK TO a savepoint does not end the transaction
        if row.word in ends and " TO " not in (row.target or "").upper():
            return later + 1 - index
        if row.word in ENDS:
            return later - index
    return len(rows) - index


def _statement(rows: Sequence[Row], index: int) -> int:
    """Return how many rows from `index` on prepare and execute one statement."""
    first = rows[index]
    if first.word not in PREPARES or not first.target:
        return 0
    for later in range(index + 1, len(rows)):
        if rows[later].target != first.target:
            return 0
        if rows[later].word not in STEPS:
            return later + 1 - index
    return 0


def _pipeline(rows: Sequence[Row], index: int) -> int:
    """Return how many requests from `index` on were sent before the first of them was answered."""
    first = rows[index]
    length = 1
    for row in rows[index + 1 :]:
        if row.word in ENDS or row.start >= (first.answered if first.answered is not None else first.end + 1):
            break
        length += 1
    return length


def table(groups: Sequence[Group], tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the groups as an Arrow table."""
    held = _held(groups, tables)
    spans = [group.span for group in groups]
    sent = [max(row.request_end for row in group.rows) - span[0] for group, span in zip(groups, spans, strict=True)]
    instant, text, number = pa.timestamp("ns", "UTC"), pa.string(), pa.uint64()
    firsts = [group.rows[0] for group in groups]
    pieces = [group.pieces() for group in groups]
    errors = [True if any(row.error for row in group.rows) else (False if group.closed else None) for group in groups]

    def ms(spent: Sequence[int]) -> pa.Array:
        return pa.array([ns / NS_PER_MS for ns in spent], pa.float64())

    return pa.table({
        "group": pa.array(range(len(groups)), number),
        "kind": pa.array([group.kind for group in groups], text),
        "stream": pa.array([row.stream for row in firsts], pa.uint32()),
        "client": pa.array([row.client for row in firsts], text),
        "client_port": pa.array([row.client_port for row in firsts], pa.uint16()),
        "server": pa.array([row.server for row in firsts], text),
        "server_port": pa.array([row.server_port for row in firsts], pa.uint16()),
        "protocol": pa.array([row.protocol for row in firsts], text),
        "method": pa.array([_names(_methods(group), " ") for group in groups], text),
        "target": pa.array([_names([row.target for row in group.rows], ", ") for group in groups], text),
        "exchanges": pa.array([len(group.rows) for group in groups], pa.uint32()),
        "first_exchange": pa.array([row.exchange for row in firsts], number),
        "last_exchange": pa.array([group.rows[-1].exchange for group in groups], number),
        "start": pa.array([start for start, _ in spans], instant),
        "end": pa.array([end for _, end in spans], instant),
        "duration_ms": ms([end - start for start, end in spans]),
        "sent_ms": ms(sent),
        "held_ms": ms(held),
        "client_ms": ms([group.between() for group in groups]),
        "pieces": pa.array([count for count, _, _ in pieces], pa.uint32()),
        "first_chunk_ms": pa.array([first for _, first, _ in pieces], pa.float64()),
        "longest_gap_ms": pa.array([gap for _, _, gap in pieces], pa.float64()),
        "error": pa.array(errors, pa.bool_()),
        "complete": pa.array([group.closed for group in groups], pa.bool_()),
    })  # fmt: skip


def _methods(group: Group) -> list[str | None]:
    """Return the methods that name a group: a transaction's first and last, a statement's verb, else all."""
    if group.kind == "transaction":
        return [group.rows[0].method, group.rows[-1].method]
    return [row.method for row in group.rows if row.word not in STEPS or group.kind != "statement"]


def _names(names: Sequence[str | None], between: str) -> str | None:
    """Join the distinct names, in their order; None without any."""
    distinct = list(dict.fromkeys(name for name in names if name))
    ellipsis = ["…"] if len(distinct) > SHOWN else []
    return between.join([*distinct[:SHOWN], *ellipsis]) or None


def _held(groups: Sequence[Group], tables: Mapping[str, pa.Table]) -> list[int]:
    """Return how long the client's kernel held a part of each group, in ns.

    Counts stalls before the end of a request, and those of messages sent between requests ("gaps").
    """
    group_and_row = {row.exchange: (index, row) for index, group in enumerate(groups) for row in group.rows}
    groups_of_stream: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        groups_of_stream.setdefault(group.rows[0].stream, []).append(index)
    spans: list[list[tuple[int, int]]] = [[] for _ in groups]
    causes = tables["causes"]
    causes = causes.filter(arrays.equals(causes, "cause", *cause_names("stall")))
    gaps = {row["gap"]: row for row in tables["gaps"].select(["gap", "stream", "kind"]).to_pylist()}
    starts, ends = (arrays.numbers(causes, name).tolist() for name in ("start", "end"))
    links = zip(causes["exchange"].to_pylist(), causes["gap"].to_pylist(), starts, ends, strict=True)
    for exchange, gap, start, end in links:
        if exchange in group_and_row:
            index, row = group_and_row[exchange]
            if end <= row.request_end:
                spans[index].append((start, end))
        elif gap is not None and gaps.get(gap, {}).get("kind") == "held":
            for index in groups_of_stream.get(gaps[gap]["stream"], []):
                first, last = groups[index].span
                if first <= start and end <= last:
                    spans[index].append((start, end))
    return [_union(held) for held in spans]


def _union(spans: Sequence[tuple[Any, Any]]) -> int:
    """Return the time that the spans cover together."""
    covered, union_end = 0, None
    for start, end in sorted(spans):
        begins = start if union_end is None else max(start, union_end)
        covered += max(0, end - begins)
        union_end = end if union_end is None else max(union_end, end)
    return covered
