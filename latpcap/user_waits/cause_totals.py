"""Add up the time of each cause: reads the tables of one capture, returns a `CauseTotal` per server, cause and owner.

All time of every exchange is given to some cause. Nagle's wait and the delayed ACKs inside it are added up as one cause
with two owners, the stall.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from latpcap import arrays, spill
from latpcap import presentation as show
from latpcap.lazy import np, pa
from latpcap.limits import LIMITS
from latpcap.tables import SETUP
from latpcap.user_waits import slow_requests as slowness
from latpcap.vocabulary import BACKEND, CAUSES, PROVEN, SIDES, STALL, cause_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from latpcap.arrays import Array

_SITE = re.compile(r"%[\w.+-]+(?=[\]:]|$)")
COHORTS = {"p50": (0.45, 0.55), "p90": (0.88, 0.92), "p99": (0.985, 0.995)}
"""The exchanges that represent a percentile: those whose rank by latency lies between these shares."""
IDLE_STREAM = "waits_for_event"
"""Grounds (column `because`) of a program's time between the pieces of an event stream: nobody waits for it."""
TCP_WAITS = cause_names("stall", "windows", "loss")
"""Causes in which TCP, and no program, kept an exchange waiting."""
RANKS = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
"""The rank of each percentile, as a share of the exchanges."""


@dataclass
class Server:
    """The exchanges of one server, the fast ones first."""

    address: str
    port: int
    rows: Array
    """Positions in the table of exchanges, by latency."""
    latency: Array
    total_ms: float
    """Sum of all its latencies."""
    slow: Array
    """The slow ones of `rows`, by latency."""
    unread: int
    """Number of the slow ones that are turns of a protocol without a reader."""
    all_requests: Array
    """Positions of all its requests, including those that are not judged."""
    cut: int
    """Number of judged requests that are incomplete: their latencies are what was captured of them."""
    incomplete: int
    """Number of incomplete requests that are not judged."""
    goodbyes: int
    """Number of those that are a client's last message before it closed: a quit, an unbind, a terminate."""
    polls: int
    """Number of long polls, which are not judged if the server has other requests."""
    clients: list[str]

    @property
    def waited_for(self) -> Array:
        """The slow rows that decide on the main cause; none if most are turns of a protocol without a reader."""
        return self.slow if 2 * self.unread <= len(self.slow) else self.slow[:0]

    @property
    def name(self) -> str:
        """Address and port, as `endpoint` writes them."""
        return endpoint(self.address, self.port)


@dataclass
class CauseTotal:
    """The time of one cause in one server's exchanges; `rows` and `ms` have one entry per exchange that it hit."""

    server: Server
    cause: str
    owner: str
    held_by: str | None
    rows: Array
    ms: Array
    causes: Array
    """Positions in the table of causes."""
    confidence: float
    proven: int
    """Number of exchanges in which this cause is proven."""

    @cached_property
    def total_ms(self) -> float:
        """Sum of `ms`."""
        total = float(self.ms.sum())
        spill.release_memory()
        return total

    @cached_property
    def ordered(self) -> Array:
        """`ms`, rising."""
        ms = spill.from_pieces(self.ms.dtype, (self.ms[span] for span in spill.parts(len(self.ms))))
        ms.sort()
        spill.release_memory()
        return ms


def endpoint(address: str, port: int) -> str:
    """Return address and port as Wireshark and URLs write them: IPv6 addresses in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def without_site(address: str) -> str:
    """Return an address, or address and port, without the site that an archive appends to a private address."""
    return _SITE.sub("", address)


class CauseTotals:
    """The time of one capture by server and cause.

    `servers` are sorted by the product of number and time of their slow requests, then by time. `slow_ms` is the
    threshold beyond the path's round trip from which a request is slow; None for the protocols' own.
    """

    def __init__(self, streams: pa.Table, exchanges: pa.Table, causes: pa.Table, slow_ms: float | None = None):
        self._exchanges, self.slow_ms = exchanges, slow_ms
        numbers = _server_of_exchange(streams, exchanges)
        self.servers, judged, self._server_of = _servers(numbers, streams, exchanges, slow_ms)
        self._row = spill.positions_of(arrays.numbers(exchanges, "exchange"), arrays.numbers(causes, "exchange"))
        self._duration = arrays.numbers(causes, "duration_ms")
        self._confidence, self._levels = arrays.levels(causes, "confidence")
        self._label, self._words = _labels(causes)
        spans = spill.parts(len(judged))
        judged_server = spill.from_pieces("int32", (np.where(judged[s], self._server_of[s], -1) for s in spans))
        server_of_cause = spill.take(judged_server, self._row)
        is_event_stream = slowness.event_streams(exchanges)
        if is_event_stream.any():
            is_idle = arrays.equals(causes, "because", IDLE_STREAM) & spill.take(is_event_stream, self._row)
            server_of_cause[is_idle] = -1
        self._causes, self._bounds = spill.grouped(server_of_cause, len(arrays.distinct(numbers)))
        self._spent: dict[str, list[CauseTotal]] = {}

    def put_first(self, name: str, called: Callable[[Server], list[str]]) -> None:
        """Move the server of this address, address and port, or `called` name to the front. ValueError without one."""
        first = named(name, self.servers, called)
        self.servers = first + [s for s in self.servers if s not in first]

    def spent(self, server: Server) -> list[CauseTotal]:
        """Return the causes of this server's time, the most important first.

        They are sorted by family, that with the most time of the slow requests first, and then by time.
        """
        if server.name not in self._spent:
            self._spent[server.name] = self._split_up(server)
        return self._spent[server.name]

    def _split_up(self, server: Server) -> list[CauseTotal]:
        index = int(self._server_of[server.rows[0]])
        causes = self._causes[slice(*self._bounds[index : index + 2].tolist())]
        has_all = len(causes) == len(self._label)  # then positions in `causes` are rows
        totals = []
        for code, positions in spill.positions_by_key(
            self._label if has_all else spill.take(self._label, causes)
        ).items():
            cause_rows = positions if has_all else spill.take(causes, positions)
            row, duration = spill.take(self._row, cause_rows), spill.take(self._duration, cause_rows)
            rows, ms = arrays.sums(row, duration)
            if ms.sum() <= 0:
                continue
            cause, owner = self._words[code]
            level = spill.take(self._confidence, cause_rows)
            proven = (row[span][(self._levels >= PROVEN)[level[span]]] for span in spill.parts(len(row)))
            totals.append(
                CauseTotal(
                    server=server,
                    cause=cause,
                    owner=owner,
                    held_by=SIDES.get(owner) if cause == STALL else None,
                    rows=rows,
                    ms=ms,
                    causes=cause_rows,
                    confidence=_weighted_median(self._levels, level, duration),
                    proven=len(arrays.distinct(spill.from_pieces(row.dtype, proven))),
                )
            )
        families = slowness.by_family(totals, server.waited_for, len(server.rows))
        rank = {name: i for i, name in enumerate(families)}
        few = slowness.few(server.waited_for, len(server.rows))

        def key(item: CauseTotal) -> tuple[int, float, float, str, str]:
            family = slowness.family(item.cause)
            ms = 0.0 if few and item.cause == "network" else families.get(family, {}).get(item.cause, 0.0)
            return rank.get(family, len(rank)), -ms, -item.total_ms, item.cause, item.owner

        return sorted(totals, key=key)


def servers(streams: pa.Table, exchanges: pa.Table) -> list[Server]:
    """Return the servers that received requests, in the order of `CauseTotals.servers`."""
    return _servers(_server_of_exchange(streams, exchanges), streams, exchanges, None)[0]


def named(name: str, among: Sequence[Server], called: Callable[[Server], list[str]]) -> list[Server]:
    """Return the servers of this address, address and port, or `called` name. ValueError without one."""
    matches = [s for s in among if name in (s.name, s.address)]
    matches = matches or [s for s in among if name in (without_site(s.name), without_site(s.address))]
    matches = matches or [s for s in among if name.lower() in map(str.lower, called(s))]
    if not matches:
        names = ", ".join(s.name for s in among[:5])
        raise ValueError(f"no server {name} received requests; there are: {names or 'none'}")
    return matches


class _Judgement:
    """Which exchanges are judged; methods mark them in a span of rows.

    Complete exchanges are judged. A server without a complete answer is judged by the answers that began. Exchanges
    that never ended are judged if TCP kept them waiting longer than all complete ones. There may be as many servers as
    exchanges, so that arrays over all servers are used instead of a loop.
    """

    def __init__(self, facts: _ExchangeFacts, server_of: Array, servers: int):
        self.facts, self.server_of, self.servers = facts, server_of, servers
        self._has_polls_only = self.count(lambda span: self._is_answered(span) & ~facts.is_poll[span]) == 0
        self._has_none = self.count(self._is_complete) == 0
        stuck_ms, complete_ms = self.sum(self._is_stuck, facts.stuck_ms), self.sum(self._is_complete, facts.time_ms)
        self._is_held = self._has_none | ~(stuck_ms <= complete_ms)
        spans = spill.parts(len(server_of))
        self.judged = spill.from_pieces("bool", (self._is_complete(span) | self.is_cut(span) for span in spans))

    def count(self, mask: Callable[[slice], Array]) -> Array:
        """Return for each server the number of the marked exchanges."""
        return self.sum(mask, None).astype(int)

    def sum(self, mask: Callable[[slice], Array], weights: Array | None) -> Array:
        """Return for each server the sum of the weights of the marked exchanges."""
        sums = np.zeros(self.servers)
        for span in spill.parts(len(self.server_of)):
            rows = np.flatnonzero(mask(span)) + span.start
            sums += np.bincount(self.server_of[rows], None if weights is None else weights[rows], self.servers)
        return sums

    def _is_answered(self, span: slice) -> Array:
        return self.facts.is_request[span] & self.facts.is_complete[span]

    def _is_complete(self, span: slice) -> Array:
        is_no_poll = ~self.facts.is_poll[span] | self._has_polls_only[self.server_of[span]]
        return self._is_answered(span) & is_no_poll

    def _is_stuck(self, span: slice) -> Array:
        return self._is_open(span) & (self.facts.stuck_ms[span] > LIMITS["stuck_ms"])

    def _is_open(self, span: slice) -> Array:
        return self.facts.is_request[span] & ~self.facts.is_complete[span]

    def is_cut(self, span: slice) -> Array:
        """Mark incomplete exchanges that are judged by what was captured of them."""
        servers = self.server_of[span]
        is_begun = self._is_open(span) & self.facts.has_begun[span]
        return (self._is_stuck(span) & self._is_held[servers]) | (is_begun & self._has_none[servers])

    def is_poll(self, span: slice) -> Array:
        """Mark long polls of servers that have other requests."""
        has_others = ~self._has_polls_only[self.server_of[span]]
        return self._is_answered(span) & self.facts.is_poll[span] & has_others

    def is_incomplete(self, span: slice) -> Array:
        """Mark incomplete requests that are not judged."""
        return self.facts.is_request[span] & ~self.judged[span] & ~self.is_poll(span)

    def is_goodbye(self, span: slice) -> Array:
        """Mark those that are a client's last message before it closed."""
        return self.is_incomplete(span) & self.facts.is_goodbye[span]

    def is_slow(self, span: slice) -> Array:
        """Mark judged exchanges that were slow."""
        return self.judged[span] & self.facts.is_slow[span]

    def is_unread(self, span: slice) -> Array:
        """Mark slow ones that are turns of a protocol without a reader."""
        return self.is_slow(span) & self.facts.is_unread[span]


def _servers(
    server_numbers: Array, streams: pa.Table, exchanges: pa.Table, slow_ms: float | None
) -> tuple[list[Server], Array, Array]:
    """Return the servers, the one whose slow requests did the most harm first.

    Also returns for each exchange whether it is judged, and the index of its server among `server_numbers`.
    """
    facts = _ExchangeFacts(streams, exchanges, slow_ms)
    first, server_of, _ = arrays.grouped(server_numbers)
    numbers = server_numbers[first]
    judgement = _Judgement(facts, server_of, len(numbers))
    by_time = spill.selected(spill.argsort(facts.time_ms), judgement.judged)
    order, bounds = spill.grouped(spill.take(server_of, by_time), len(numbers))
    rows = spill.take(by_time, order)
    slow_rows = spill.selected(rows, facts.is_slow)
    slow_bounds = np.r_[0, np.cumsum(judgement.count(judgement.is_slow))]
    spans = spill.parts(len(server_of))
    server_of_request = (np.where(facts.is_request[span], server_of[span], -1) for span in spans)
    requests, request_bounds = spill.grouped(spill.from_pieces("int32", server_of_request), len(numbers))
    latency = spill.take(facts.time_ms, rows)
    total_ms = _sums(latency, bounds)
    slow_ms_of = _sums(spill.take(facts.time_ms, slow_rows), slow_bounds)
    masks = {
        "unread": judgement.is_unread, "cut": judgement.is_cut, "incomplete": judgement.is_incomplete,
        "goodbyes": judgement.is_goodbye, "polls": judgement.is_poll,
    }  # fmt: skip
    counts = {name: judgement.count(mask).tolist() for name, mask in masks.items()}
    ends, clients = _ends(numbers, streams), _clients(rows, server_of, numbers, streams, facts.stream_row)
    rows_of, slow_of, requests_of = map(_slices, (bounds, slow_bounds, request_bounds))
    ranked = []
    for i in np.flatnonzero(np.diff(bounds)).tolist():
        server = Server(
            *ends[i], rows=rows[rows_of[i]], latency=latency[rows_of[i]], total_ms=total_ms[i],
            slow=slow_rows[slow_of[i]], all_requests=requests[requests_of[i]], clients=clients[i],
            **{name: values[i] for name, values in counts.items()},
        )  # fmt: skip
        harm = (len(server.slow) - show.UNREAD_WEIGHT * server.unread) * slow_ms_of[i]
        ranked.append((-harm, -server.total_ms, server.name, server))
    ranked.sort(key=lambda entry: entry[:3])
    return [server for *_, server in ranked], judgement.judged, server_of


def _sums(values: Array, bounds: Array) -> list[float]:
    """Return the sum of the values from each bound to the next."""
    sums = np.zeros(len(bounds) - 1)
    filled = np.flatnonzero(np.diff(bounds))
    if len(filled):
        sums[filled] = np.add.reduceat(values, bounds[filled])
    spill.release_memory()
    return sums.tolist()


def _slices(bounds: Array) -> list[slice]:
    return [slice(*edges) for edges in pairwise(bounds.tolist())]


def _ends(numbers: Array, streams: pa.Table) -> list[tuple[str, int]]:
    """Return address and port of each server, by its number from `_server_of_exchange`."""
    sides = {side: (*arrays.codes(streams, side), arrays.numbers(streams, f"{side}_port")) for side in SIDES}
    ends = []
    for number in numbers.tolist():
        codes, addresses, ports = sides["server" if number < streams.num_rows else "client"]
        row = number % streams.num_rows
        ends.append((addresses[int(codes[row])], int(ports[row])))
    return ends


def _clients(rows: Array, server_of: Array, numbers: Array, streams: pa.Table, stream_row: Array) -> list[list[str]]:
    """Return the client addresses of each server, sorted; `rows` must be grouped by server."""
    sides = {side: arrays.codes(streams, side) for side in SIDES}
    width = max((len(addresses) for _, addresses in sides.values()), default=0)
    pair_parts = []
    for span in spill.parts(len(rows)):
        stream_rows, servers = stream_row[rows[span]], server_of[rows[span]].astype(np.int64)
        is_usual = numbers[servers] < streams.num_rows
        codes = np.where(is_usual, sides["client"][0][stream_rows], sides["server"][0][stream_rows])
        pair_parts.append(arrays.distinct(servers * width + codes))
    pairs = arrays.distinct(np.concatenate(pair_parts)) if pair_parts else np.zeros(0, np.int64)
    clients: list[list[str]] = [[] for _ in range(len(numbers))]
    is_usual = (numbers < streams.num_rows).tolist()
    for server, code in zip((pairs // max(width, 1)).tolist(), (pairs % max(width, 1)).tolist(), strict=True):
        clients[server].append(sides["client" if is_usual[server] else "server"][1][code])
    for addresses in clients:
        addresses.sort()
    return clients


class _ExchangeFacts:
    """Properties of each exchange that decide whether it is judged and whether it was slow."""

    is_complete: Array
    has_begun: Array
    is_request: Array
    is_slow: Array
    is_unread: Array
    is_goodbye: Array
    is_poll: Array
    time_ms: Array
    stuck_ms: Array

    def __init__(self, streams: pa.Table, exchanges: pa.Table, slow_ms: float | None):
        self.stream_row = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
        columns = {name: spill.Column("float64" if name.endswith("_ms") else "bool") for name in self.__annotations__}
        for span, rows in arrays.sliced(exchanges):
            for name, values in self._of(streams, rows, self.stream_row[span], slow_ms).items():
                columns[name].add(values)
        for name, column in columns.items():
            setattr(self, name, column.array())
        spill.release_memory()

    @staticmethod
    def _of(streams: pa.Table, exchanges: pa.Table, stream_row: Array, slow_ms: float | None) -> dict[str, Array]:
        is_complete = arrays.numbers(exchanges, "complete").astype(bool)
        has_begun = ~np.isnan(arrays.numbers(exchanges, "response_first_frame").astype(float))
        cause_ms = {cause: arrays.numbers(exchanges, f"{cause}_ms") for cause in CAUSES}
        captured_ms = sum(cause_ms.values(), np.zeros(exchanges.num_rows))
        time_ms = np.where(is_complete, arrays.numbers(exchanges, "latency_ms"), captured_ms)
        is_event_stream = slowness.event_streams(exchanges)
        first_event_ms, _ = slowness.waits_for_streams(exchanges, time_ms, slow_ms)
        return {
            "is_complete": is_complete,
            "has_begun": has_begun,
            # a complete exchange without an answer is a subscription whose protocol has none
            "is_request": ~arrays.equals(exchanges, "protocol", SETUP) & ~(is_complete & ~has_begun),
            "is_slow": slowness.late(exchanges, time_ms, slow_ms),
            "is_unread": slowness.unread(exchanges),
            "is_poll": slowness.long_polls(exchanges),
            "is_goodbye": ~is_complete & ~has_begun & _is_goodbye(streams, exchanges, stream_row),
            # users wait for the first event of a stream; later ones are sent when there is something to report
            "time_ms": np.where(is_event_stream, first_event_ms, time_ms),
            "stuck_ms": sum((cause_ms[cause] for cause in TCP_WAITS), np.zeros(exchanges.num_rows)),
        }


def _is_goodbye(streams: pa.Table, exchanges: pa.Table, stream_row: Array) -> Array:
    """Return the exchanges without a method after which the client closed at once."""
    ended = arrays.numbers(streams, "end")[stream_row] - arrays.numbers(exchanges, "request_end")
    nameless = arrays.codes(exchanges, "method")[0] < 0
    fins: Array = arrays.equals(exchanges, "cut_by", "fin")
    fins = fins & arrays.equals(streams, "closed_by", "client_fin")[stream_row]
    return nameless & fins & (ended < LIMITS["goodbye_ns"])


def _server_of_exchange(streams: pa.Table, exchanges: pa.Table) -> Array:
    """Return a number for the server of each exchange: the first row of `streams` with the same server.

    If the accepting side sends the requests, the server is the stream's client. Its number is the first row with that
    client, plus the number of streams.
    """
    if not exchanges.num_rows:
        return np.zeros(0, np.int64)
    first, server_of, _ = arrays.grouped(server_keys(streams))
    rows = spill.positions_of(arrays.numbers(streams, "stream"), arrays.numbers(exchanges, "stream"))
    asks = arrays.numbers(exchanges, "server_asks").astype(bool)
    spans = spill.parts(len(rows))
    if not asks.any():
        return spill.from_pieces("int32", (first[server_of[rows[span]]] for span in spans))
    first_of_client, client_of, _ = arrays.grouped(arrays.codes(streams, "client")[0])
    client = streams.num_rows + first_of_client[client_of]
    return spill.from_pieces("int32", (np.where(asks[s], client[rows[s]], first[server_of[rows[s]]]) for s in spans))


def server_keys(streams: pa.Table) -> Array:
    """Return a number for the server of each stream, made of its address and port."""
    server, _ = arrays.codes(streams, "server")
    port = arrays.numbers(streams, "server_port")
    spans = spill.parts(streams.num_rows)
    return spill.from_pieces("int64", (server[span].astype(np.int64) << 16 | port[span] for span in spans))


def _labels(causes: pa.Table) -> tuple[Array, dict[int, tuple[str, str]]]:
    """Return for each row of "causes" the number of its cause and owner, and the cause and owner of each number."""
    cause, cause_words = arrays.codes(causes, "cause")
    parent, parent_words = arrays.codes(causes, "parent")
    owner, owner_words = arrays.codes(causes, "owner")
    rule, _ = arrays.codes(causes, "rule")
    owner_words = [*owner_words, *(w for w in SIDES if w not in owner_words)]
    nagle, held = arrays.code_of(cause_words, "nagle"), arrays.code_of(cause_words, "delayed_ack")
    width = len(owner_words)
    in_nagle, backend = arrays.code_of(parent_words, "nagle"), arrays.code_of(owner_words, BACKEND)
    # Nagle's part of a stall has the same rule as the held ACK; other waits of Nagle have other rules
    spans = list(spill.parts(causes.num_rows))
    rules = set[int]()
    for span in spans:
        rules.update(arrays.distinct(rule[span][(cause[span] == held) & (parent[span] == in_nagle)]).tolist())
    # the owner of a stall is the side that can mend it: the sender, which is the peer of the held ACK's owner
    peer = np.array([owner_words.index(SIDES.get(w, w)) for w in owner_words], np.int16)
    column = spill.Column("int16")
    for span in spans:
        is_inside = (cause[span] == held) & (parent[span] == in_nagle)
        is_stall = is_inside | ((cause[span] == nagle) & np.isin(rule[span], list(rules)))
        is_stall |= (owner[span] == backend) & np.isin(cause[span], (nagle, held))
        mender = np.where(is_inside, peer[owner[span]], owner[span])
        column.add(np.where(is_stall, len(cause_words), cause[span]).astype(np.int16) * np.int16(width) + mender)
    names, label = [*cause_words, STALL], column.array()
    return label, {int(n): (names[n // width], owner_words[n % width]) for n in arrays.distinct(label)}


def _weighted_median(levels: Array, codes: Array, weights: Array) -> float:
    """Return the weighted median of a few levels; `codes` and `weights` have one entry per row."""
    spent = spill.sum_weights(codes, weights, len(levels))
    order = np.argsort(levels)
    total = np.cumsum(spent[order])
    return float(levels[order][np.searchsorted(total, total[-1] / 2)])


def cohort(item: CauseTotal, name: str) -> tuple[float, float]:
    """Return the part of a percentile of latency that this cause took: in ms, and as a share.

    The share is measured over the exchanges around the percentile (`COHORTS`).
    """
    server = item.server
    low, high = COHORTS[name]
    count = len(server.rows)
    start = min(int(low * count), count - 1)
    around = slice(start, max(start + 1, int(high * count)))
    near = spill.row_mask(server.rows[around], int(max(server.rows[around].max(), item.rows[-1])) + 1)
    spans = spill.parts(len(item.rows))
    taken = float(np.concatenate([item.ms[span][near[item.rows[span]]] for span in spans]).sum())
    latency = float(server.latency[around].sum())
    spill.release_memory()
    share = min(1.0, taken / latency) if latency > 0 else 0.0
    return share * arrays.percentile(server.latency, RANKS[name]), share
